"""What an earlier version kept on disk is read by this one: nothing is lost by an upgrade."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commands.command_line import Done, cellagent
from tests.support.commands.running_agent import end_all, serve

FOLDERS = sorted((Path(__file__).parent / "interface").glob("written-by-*"))
THEN = "127.0.0.1:33111"
SESSION = Path(__file__).parent / "interface" / "inputs" / "session.py"
ASKED = ("AT+CGMM", "AT+CFUN?", "AT%KEYGEN=1,9,0", "AT+CFUN=1", "AT+CESQ")
DEVICE = "56495254-2744-8d84-f4f5-392b9740fc56"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


@dataclass
class Upgraded:
    """A home with the files of an earlier version, as its user finds it after an upgrade."""

    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "CELLAGENT_CONFIG": str(self.folder / "config.toml"),
            "CELLAGENT_STATE_DIR": str(self.folder / "state"),
        }

    @property
    def journal(self) -> Path:
        return self.folder / "state" / "fota" / DEVICE

    def put(self, name: str, place: str) -> None:
        """Put a file where the earlier version had it, in its state folder."""
        target = self.folder / "state" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).rename(target)

    async def run(self, *words: str) -> Done:
        done = await cellagent(*words, "--json", environment=self.environment)
        assert done.code == 0, done.out + done.err
        return done

    async def serve_cloud(self) -> None:
        """Serve the stand-in of then; its address is another now, and as long."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            listen = f"127.0.0.1:{free.getsockname()[1]}"
        state = self.folder / "standin.state"
        for file in (state, self.folder / "config.toml", self.journal / "journal.json"):
            if file.exists():
                file.write_bytes(file.read_bytes().replace(THEN.encode(), listen.encode()))
        await serve("cloud", "serve", "--state", str(state), "--listen", listen)

    async def serve_kit(self) -> None:
        where = ("--pty", str(self.folder / "kit"), "--state", str(self.folder / "kit.state"))
        await serve("modem", "virtual", "--instant", "--dialect", "serial-modem", *where)


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
async def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Upgraded]:
    folder = tmp_path / "home"
    shutil.copytree(request.param, folder)
    for path in folder.rglob("*"):  # git keeps no modes
        path.chmod(0o700 if path.is_dir() else 0o600)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("{folder}", str(folder)))
    yield Upgraded(folder)
    await end_all()


async def test_what_waits_in_an_outbox_is_listed_and_delivered(upgraded: Upgraded) -> None:
    upgraded.put("outbox.sqlite", "outbox/standin/outbox.sqlite")
    await upgraded.serve_cloud()
    *items, told = (await upgraded.run("outbox", "list")).lines
    kinds = ["event", "event", "chunk", "chunk", "coredump"]
    assert [(item["id"], item["kind"]) for item in items] == list(enumerate(kinds, 1))
    assert {item["device"] for item in items} == {"kit-1"}
    assert (told["summary"]["waiting"], told["summary"]["parked"]) == (5, 0)
    flushed = await upgraded.run("outbox", "flush")
    assert flushed.lines == [{"delivered": 5, "waiting": 0, "parked": 0}]


async def test_a_ledger_tells_of_its_boards_and_their_steps(upgraded: Upgraded) -> None:
    upgraded.put("ledger.sqlite", "ledger.sqlite")
    boards = (await upgraded.run("provision", "status")).lines
    assert sorted(board["outcome"] for board in boards) == ["done", "done", "failed"]
    assert DEVICE in {board["device_id"] for board in boards}
    [board] = [board for board in boards if board["device_id"] == DEVICE]
    steps = (await upgraded.run("provision", "status", board["uuid"])).out
    for step in ("key", "register", "clock", "proof"):
        assert f'"{step}"' in steps


async def test_a_board_that_is_done_is_left_alone(upgraded: Upgraded) -> None:
    upgraded.put("ledger.sqlite", "ledger.sqlite")
    await upgraded.serve_cloud()
    await upgraded.serve_kit()
    goal = ("--registration", "onboard", "--set-clock")
    done = await upgraded.run("provision", "run", str(upgraded.folder / "kit"), *goal)
    assert (done.lines[0]["outcome"], done.lines[0]["writes"]) == ("unchanged", 0)


async def test_an_update_that_broke_off_is_gone_on_with(upgraded: Upgraded) -> None:
    upgraded.put("fota-open", f"fota/{DEVICE}")
    await upgraded.serve_cloud()
    await upgraded.serve_kit()
    [shown] = (await upgraded.run("fota", "status")).lines
    assert (shown["open"]["step"], shown["open"]["bytes"]) == ("started", 20071)
    done = await upgraded.run("fota", "pull")
    assert done.lines[0]["job"] == shown["open"]["job"]
    assert (done.lines[0]["status"], done.lines[0]["delivered"]) == ("SUCCEEDED", True)


async def test_a_journal_remembers_how_an_update_ended(upgraded: Upgraded) -> None:
    upgraded.put("fota-ended", f"fota/{DEVICE}")
    [shown] = (await upgraded.run("fota", "status")).lines
    assert (shown["device_id"], shown["open"]) == (DEVICE, None)
    assert [(one["status"], one["delivered"]) for one in shown["results"]] == [("FAILED", True)]


async def test_a_transcript_is_replayed_to_its_end(upgraded: Upgraded) -> None:
    words = ("modem", "replay", str(upgraded.folder / "session.transcript"), "--json")
    port = ("--pty", str(upgraded.folder / "played"))
    done = await cellagent(*words, *port, "--", sys.executable, str(SESSION), *ASKED)
    assert done.code == 0, done.err


async def test_the_values_of_its_profiles_are_shown(upgraded: Upgraded) -> None:
    shown = (await upgraded.run("config", "show", "--all")).lines
    values = {line["key"]: line["value"] for line in shown if "key" in line}
    assert values["kit.baud"] == 1000000
    assert values["provisioning.tags"] == ["bench", "left"]
    assert values["location.wifi"] == "none"
    assert values["account.organization"] == "acme"
    secrets = {line["secret"] for line in shown if line.get("set")}
    assert {"api_key", "organization_token", "project_key", "control_token"} <= secrets
    shown = (await upgraded.run("config", "show", "--all", "--profile", "lab")).lines
    values = {line["key"]: line["value"] for line in shown if "key" in line}
    assert values["hosts.api"] == "https://lab.example"
    assert (values["kit.dialect"], values["outbox.max_items"]) == ("serial-modem", 500)


async def test_a_virtual_modem_still_has_its_key_and_the_cloud_knows_it(upgraded: Upgraded) -> None:
    await upgraded.serve_cloud()
    await upgraded.serve_kit()
    listed = (await upgraded.run("modem", "at", "AT%CMNG=1,16842753")).lines
    assert "16842753,2" in "".join(listed[0]["lines"])
    [device] = (await upgraded.run("device", "show", DEVICE)).lines
    assert device["id"] == DEVICE


async def test_what_the_agent_remembers_of_a_kit_is_known_before_it_is_plugged_in(
    upgraded: Upgraded,
) -> None:
    upgraded.put("kit.json", "kits/kit.json")
    remembered = json.loads((upgraded.folder / "state" / "kits" / "kit.json").read_text())
    await upgraded.serve_cloud()
    agent = await serve("run", "--json", environment=upgraded.environment)
    # Exit code 1: the kit's port is not there.
    told = await cellagent("status", "--json", environment=upgraded.environment)
    assert await agent.end() == 0
    concerns = {one["concern"]: one for one in told.lines[0]["kits"][0]["concerns"]}
    assert concerns["link"]["device_id"] == DEVICE
    assert concerns["location"]["position"] == remembered["place"]
