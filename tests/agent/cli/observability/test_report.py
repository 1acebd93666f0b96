"""`cellagent report` and `cellagent outbox`, with the stand-in and without any service."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standin import StandIn
from zephyr_dumps import arch, header

from agent.config.profile import OutboxSettings as Limits
from agent.outbox import Outbox

IDENTITY = ["--device-serial", "kit-1", "--hardware-version", "nrf9161dk"]
IDENTITY += ["--software-type", "main", "--software-version", "1.0.0"]


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile whose service cannot be reached."""
    return profile(tmp_path, monkeypatch, "http://127.0.0.1:9", "0" * 32)


@pytest.fixture
def online(standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    key = standin.credentials["project_key"]
    profile(tmp_path, monkeypatch, standin.urls["device_cloud"], key)
    monkeypatch.setenv("CELLAGENT_ORG_TOKEN", standin.credentials["organization_auth_token"])
    return standin


def profile(folder: Path, monkeypatch: pytest.MonkeyPatch, url: str, key: str) -> Path:
    path = folder / "config.toml"
    hosts = "".join(f'{name} = "{url}"\n' for name in ("chunks", "ingress", "files", "api"))
    path.write_text(
        f"[profiles.t.hosts]\n{hosts}[profiles.t.outbox]\nmin_free_bytes = 0\n"
        '[profiles.t.account]\norganization = "acme"\nproject = "kits"\n'
    )
    path.chmod(0o600)
    monkeypatch.setenv("CELLAGENT_CONFIG", str(path))
    monkeypatch.setenv("CELLAGENT_PROFILE", "t")
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", key)
    return path


async def cellagent(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict], str]:
    import asyncio

    def work() -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "agent", *arguments, "--json"]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)

    done = await asyncio.to_thread(work)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr.decode()


@pytest.mark.contract("O5.6", "O3.4")
async def test_an_event_is_delivered_at_once_when_the_service_is_there(online):
    code, (told,), _ = await cellagent("report", "event", *IDENTITY, "--metric", "battery_pct=77")
    assert code == 0
    assert told == {"queued": 1, "duplicates": 0, "delivered": 1, "waiting": 0, "parked": 0}


async def test_what_cannot_be_sent_is_kept_and_listed_and_sent_later(offline, standin, monkeypatch):
    code, lines, _ = await cellagent("report", "event", *IDENTITY, "--reason", "32769")
    assert code == 6
    assert lines[0]["waiting"] == 1
    assert lines[1]["error"]["exit"] == 6
    code, (item, _), _ = await cellagent("outbox", "list")
    assert (code, item["kind"], item["device"]) == (0, "event", "kit-1")
    offline.write_text(
        offline.read_text().replace("http://127.0.0.1:9", standin.urls["device_cloud"])
    )
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", standin.credentials["project_key"])
    code, (told,), _ = await cellagent("outbox", "flush")
    assert (code, told) == (0, {"delivered": 1, "waiting": 0, "parked": 0})


async def test_a_wrong_key_is_exit_5_and_loses_nothing(online, monkeypatch):
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", "0" * 32)
    code, lines, _ = await cellagent("report", "event", *IDENTITY, "--metric", "a=1")
    assert (code, lines[0]["waiting"]) == (5, 1)


async def test_the_outbox_tells_when_an_event_happened_not_when_it_was_queued(offline):
    happened = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    arguments = ("--metric", "a=1", "--captured-date", happened, "--queue")
    await cellagent("report", "event", *IDENTITY, *arguments)
    _, (item, _), _ = await cellagent("outbox", "list")
    assert item["captured"] == happened


async def test_a_bad_event_is_refused_and_none_of_an_import_is_kept(offline):
    event = {
        "type": "heartbeat",
        "device_serial": "kit 1",
        "hardware_version": "a",
        "software_type": "b",
        "software_version": "1",
        "event_info": {"metrics": {}},
    }
    good = {**event, "device_serial": "kit-1"}
    text = f"{json.dumps(good)}\n{json.dumps(event)}\n".encode()
    code, (told,), _ = await cellagent("report", "event", "--from", "-", stdin=text)
    assert code == 2
    assert "event 1: device_serial" in told["error"]["message"]
    _, (summary,), _ = await cellagent("outbox", "list")
    assert summary["summary"]["waiting"] == 0


async def test_chunks_are_kept_in_order_from_the_file_form_too(offline):
    stored = b"".join(b"CHNK" + len(each).to_bytes(4, "big") + each for each in (b"abc", b"defg"))
    code, (told,), _ = await cellagent(
        "report", "chunks", "-", "--device-serial", "kit-1", "--queue", stdin=stored
    )
    assert (code, told["queued"]) == (0, 2)
    _, (first, second, _), _ = await cellagent("outbox", "list")
    assert (first["bytes"], second["bytes"]) == (3, 4)
    code, (told,), _ = await cellagent("outbox", "drop", str(first["id"]))
    assert (code, told) == (0, {"dropped": 1})


async def test_what_is_no_core_dump_is_refused(offline, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"not a dump")
    code, (told,), _ = await cellagent("report", "coredump", str(path), *IDENTITY)
    assert code == 2
    assert "no core dump" in told["error"]["message"]


async def test_a_name_that_breaks_its_rule_is_refused_also_where_it_is_not_needed(
    offline, tmp_path
):
    path = tmp_path / "core.bin"
    path.write_bytes(struct.pack("<7I", 0x45524F43, 2, 28, 0x504D5544, 0, 0, 0))
    code, (told,), _ = await cellagent("report", "coredump", str(path), "--device-serial", "a b")
    assert (code, "device_serial 'a b'" in told["error"]["message"]) == (2, True)


async def test_a_zephyr_dump_needs_the_identity_that_it_does_not_hold(offline, tmp_path):
    path = tmp_path / "zephyr.bin"
    path.write_bytes(header() + arch())
    code, (told,), _ = await cellagent("report", "coredump", str(path), "--device-serial", "kit-1")
    assert code == 2
    assert "--hardware-version" in told["error"]["message"]
    code, (told,), _ = await cellagent("report", "coredump", str(path), *IDENTITY, "--queue")
    assert (code, told["queued"]) == (0, 1)


@pytest.mark.contract("O5.3", "O5.6")
async def test_a_file_of_a_build_is_uploaded(online, tmp_path):
    path = tmp_path / "app.bin"
    path.write_bytes(bytes(1000))
    code, (told,), _ = await cellagent("report", "file", str(path), "--kind", "ota", *IDENTITY)
    assert (code, told["kind"], told["bytes"]) == (0, "OTA_PAYLOAD", 1000)
    code, (told,), _ = await cellagent("report", "file", str(path), "--kind", "symbols")
    assert code == 2


@pytest.mark.contract("O5.3")
async def test_a_file_that_is_there_is_not_sent_again_unless_asked_to(online, tmp_path):
    path = tmp_path / "report.zip"
    path.write_bytes(bytes(1000))
    arguments = ("report", "file", str(path), "--kind", "bugreport")
    _, (first,), _ = await cellagent(*arguments)
    assert "before" not in first
    code, (second,), _ = await cellagent(*arguments)
    assert code == 0
    assert "before" in second
    _, (third,), _ = await cellagent(*arguments, "--again")
    assert "before" not in third
    path.write_bytes(bytes(1001))
    _, (changed,), _ = await cellagent(*arguments)
    assert "before" not in changed


async def test_while_the_agent_holds_the_outbox_items_are_left_for_it(offline, tmp_path):
    folder = Path(os.environ["CELLAGENT_STATE_DIR"]) / "outbox" / "t"
    with Outbox(folder, Limits(min_free_bytes=0)) as box:
        code, (told,), _ = await cellagent("report", "event", *IDENTITY, "--metric", "a=1")
        assert (code, told) == (0, {"queued": 1, "left_for_the_agent": True})
        code, (told,), _ = await cellagent("outbox", "list")
        assert (code, told["error"]["kind"]) == (6, "outbox-held")
        from agent.outbox.handoff import collect

        assert collect(box) == 1
        assert collect(box) == 0
        assert box.transact(lambda store: store.totals()).waiting == 1
