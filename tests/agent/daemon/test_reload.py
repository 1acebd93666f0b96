"""`cellagent reload`: what can fail is tried first, then everything is taken."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.config import load
from agent.daemon.agent import Agent
from agent.daemon.control.client import AgentRefused, send_request
from agent.daemon.control.protocol import Answer, ReloadRequest
from agent.daemon.control.socket import control_sockets
from agent.daemon.snapshot import Phase
from agent.errors import UsageError
from agent.files import paths
from at.driver.modem import open_modem
from tests.support.commands.running_agent import (
    RunningAgent,
    agent_on,
    concern_of,
    kit_keys,
    kit_to_crash,
    serve,
    write_profile,
)
from tests.support.harness.own_port import own_port

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.fixture
def places() -> Iterator[tuple[int, int]]:
    """Two ports of this test's own."""
    with own_port() as first, own_port() as second:
        yield first, second


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return str(answer.read(), "utf-8")


def served(port: int) -> bool:
    """Tell whether metrics are served at a port."""
    try:
        return "cellagent_well" in metrics(port)
    except urllib.error.URLError:
        return False


def accepts(port: int) -> bool:
    """Tell whether anything listens at a port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def metrics_at(port: int) -> str:
    return f'[profiles.bench.metrics]\nlisten = "127.0.0.1:{port}"\n'


async def kits_of(agent: RunningAgent) -> list[str]:
    status = json.loads((await agent.run("status", "--json")).out)
    return [kit["name"] for kit in status["kits"]]


def ids_of(status: dict[str, Any]) -> list[str | None]:
    """Return the device ids of the kits left and right, as far as they are known."""
    return [concern_of(status, kit, "link").get("device_id") for kit in ("left", "right")]


@pytest.fixture
async def cloud():
    found = await serve("cloud", "serve")
    return found.ready


async def test_metrics_move_and_a_place_that_is_taken_changes_nothing(
    tmp_path: Path, cloud, places: tuple[int, int]
):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    one_kit = {"kit": kit_keys(tmp_path)}
    two_kits = {**one_kit, "other": kit_keys(tmp_path, "other")}
    first, second = places
    where = write_profile(tmp_path, cloud, one_kit, metrics_at(first))
    async with kit_to_crash(tmp_path), agent_on(where) as agent:
        assert served(first)
        write_profile(tmp_path, cloud, one_kit, metrics_at(second))
        assert (await agent.run("reload")).code == 0
        assert (served(first), served(second)) == (False, True)
        with taken_port() as taken:
            write_profile(tmp_path, cloud, two_kits, metrics_at(taken))
            refused = await agent.run("reload")
        assert (refused.code, str(taken) in refused.err) == (2, True), refused.err
        assert served(second)
        assert await kits_of(agent) == ["kit"]
        write_profile(tmp_path, cloud, two_kits)
        assert (await agent.run("reload")).code == 0
        assert not served(second)
        assert await kits_of(agent) == ["kit", "other"]
        assert await agent.stop() == 0


async def test_a_start_whose_metrics_cannot_be_served_leaves_no_socket(tmp_path: Path, cloud):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    with taken_port() as taken:
        where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)}, metrics_at(taken))
        agent = Agent(lambda: load(environ={**os.environ, **where}))
        with pytest.raises(UsageError, match=str(taken)):
            await agent.run(lambda: None)
    assert not any(control_sockets(agent.configuration.state_dir))


async def test_a_page_stays_where_it_is_when_the_metrics_cannot_be_served(
    tmp_path: Path, cloud, places: tuple[int, int]
):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    pytest.importorskip("uvicorn", reason="pip install 'cellagent[page]'")
    kit, (first, second) = {"kit": kit_keys(tmp_path)}, places
    page = '[profiles.bench.page]\nlisten = "127.0.0.1:{}"\n'
    where = write_profile(tmp_path, cloud, kit, page.format(first))
    async with agent_on(where) as agent:
        with taken_port() as taken:
            write_profile(tmp_path, cloud, kit, page.format(second) + metrics_at(taken))
            refused = await agent.run("reload")
        assert (refused.code, str(taken) in refused.err) == (2, True), refused.err
        assert (accepts(first), accepts(second)) == (True, False)
        assert await agent.stop() == 0


async def test_two_kits_change_their_ports_and_neither_is_in_the_other_s_way(tmp_path: Path, cloud):
    left, right = kit_keys(tmp_path, "left"), kit_keys(tmp_path, "right")
    where = write_profile(tmp_path, cloud, {"left": left, "right": right})
    async with (
        kit_to_crash(tmp_path, name="left", imei="35265610900001"),
        kit_to_crash(tmp_path, name="right", imei="35265610900002"),
        agent_on(where) as agent,
    ):
        before = ids_of(await agent.until_status(lambda status: None not in ids_of(status)))
        write_profile(tmp_path, cloud, {"left": right, "right": left})
        assert (await agent.run("reload")).code == 0
        await agent.until_status(lambda status: ids_of(status) == before[::-1])
        await agent.stop()
    assert [line for line in agent.log if "in use" in line] == []


@pytest.mark.parametrize("turns", [1, 20])
async def test_an_agent_that_is_stopped_in_a_reload_leaves_its_kits_as_at_any_other_time(
    tmp_path: Path, cloud, turns: int
):
    kit = kit_keys(tmp_path)
    environ = {**os.environ, **write_profile(tmp_path, cloud, {"kit": kit})}
    ready = asyncio.Event()
    async with kit_to_crash(tmp_path):
        before = asyncio.all_tasks()
        agent = Agent(lambda: load(environ=environ))
        running = asyncio.create_task(agent.run(ready.set))
        await ready.wait()
        while agent.kits["kit"].link.concern.phase is not Phase.WELL:
            await agent.registry.changed()
        write_profile(tmp_path, cloud, {"kit": {**kit, "settle_s": 7}})  # it is taken out, and in
        reloading = asyncio.create_task(agent.reload())  # as SIGHUP does
        for _ in range(turns):
            await asyncio.sleep(0)
        agent.stop()
        await running
        assert reloading.done()
        await agent.reload()  # SIGHUP came as it ended
        assert asyncio.all_tasks() == before
        async with open_modem(kit["port"]) as modem:
            assert modem._cmee_before == 0, "it was put back"


async def test_a_profile_that_names_no_kit_any_more_is_refused_with_a_way_out(
    tmp_path: Path, cloud
):
    where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)})
    async with agent_on(where) as agent:
        write_profile(tmp_path, cloud, {})
        refused = await agent.run("reload")
        assert "`cellagent config set kit.port PORT" in refused.err
        agent.process.send_signal(signal.SIGHUP)
        await agent.stop()
    assert refused.code == 2
    (line,) = [line for line in agent.log if "no kit is plugged in" in line]
    assert "goes on as before" in line, line
    assert "Traceback" not in line


async def test_a_kit_that_was_named_and_has_another_name_now_is_refused(tmp_path: Path, cloud):
    where = write_profile(tmp_path, cloud, {"left": kit_keys(tmp_path)})
    async with agent_on(where, "--port", "left") as agent:
        write_profile(tmp_path, cloud, {"right": kit_keys(tmp_path)})
        refused = await agent.run("reload")
        assert (refused.code, "profile bench has no kit left any more" in refused.err) == (2, True)
        (status,) = (await agent.run("status", "--json")).lines
        assert [kit["name"] for kit in status["kits"]] == ["left"], "it goes on as before"


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("reload",), "config set page.listen 127.0.0.1:0 --profile bench"),
        (("page",), "page --listen 127.0.0.1:0"),
    ],
)
async def test_the_way_out_of_a_taken_place_of_the_page_can_be_pasted(
    tmp_path: Path, cloud, words: tuple[str, ...], way: str
):
    pytest.importorskip("starlette", reason="pip install 'cellagent[page]'")
    kits = {"kit": kit_keys(tmp_path)}
    where = write_profile(tmp_path, cloud, kits)
    async with agent_on(where) as agent:
        with taken_port() as taken:
            page = f'[profiles.bench.page]\nlisten = "127.0.0.1:{taken}"\n'
            write_profile(tmp_path, cloud, kits, page)
            refused = await agent.run(*words)
        assert (refused.code, f"`cellagent {way}`" in refused.err) == (2, True), refused.err


async def test_a_reload_that_is_refused_for_its_folder_keeps_the_kits(tmp_path: Path, cloud):
    where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)})
    async with agent_on(where) as agent:
        folder = paths.state_dir() / "kits"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        write_profile(tmp_path, cloud, {"kit": {**kit_keys(tmp_path), "slot": "A1"}})
        assert (await agent.run("reload")).code == 4
        assert await kits_of(agent) == ["kit"]
        folder.chmod(0o700)
        assert (await agent.run("reload")).code == 0


async def test_the_metrics_say_what_became_of_the_outbox(
    tmp_path: Path, cloud, places: tuple[int, int]
):
    port, _ = places
    where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)}, metrics_at(port))
    event = "--device-serial kit-1 --hardware-version b --software-type main --software-version 1.0"
    async with agent_on(where) as agent:
        sent = await agent.run("report", "event", *event.split(), "--metric", "battery_pct=77")
        assert sent.code == 0, sent.err
        await agent.until_status(lambda status: status["outbox"]["counts"].get("delivered") == 1)
        told = metrics(port)
    assert 'cellagent_fact{concern="outbox",fact="delivered",kit=""} 1.0' in told
    # From the beginning: of a count that appears with its first value nobody sees the rise.
    assert 'cellagent_fact{concern="outbox",fact="unreadable",kit=""} 0.0' in told
    assert 'cellagent_well{concern="link",kit="kit"} 0.0' in told


async def test_the_outbox_keeps_to_its_new_limits(tmp_path: Path, cloud):
    kits = {"kit": kit_keys(tmp_path)}
    where = write_profile(tmp_path, cloud, kits)
    async with kit_to_crash(tmp_path) as kit, agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        write_profile(tmp_path, cloud, kits, "[profiles.bench.outbox]\nmax_bytes = 10\n")
        assert (await agent.run("reload")).code == 0
        kit.crash()
        assert "an outbox of 10" in (await agent.until("kit", "console", "trouble"))["trouble"]
        write_profile(tmp_path, cloud, kits)
        assert (await agent.run("reload")).code == 0
        await agent.until("kit", "console", "well")


async def test_a_service_that_the_profile_does_not_name_is_off_until_it_names_it(
    tmp_path: Path, cloud
):
    """It was trouble, tried again every few seconds, of which only a reload could make anything."""

    def phases(status: dict[str, Any]) -> list[str]:
        return [concern_of(status, "kit", each)["phase"] for each in ("location", "fota")]

    kits = {"kit": kit_keys(tmp_path)}
    where = write_profile(tmp_path, {**cloud, "urls": {}}, kits)
    async with kit_to_crash(tmp_path), agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
        status = await agent.until_status(lambda now: phases(now) == ["off", "off"])
        off = concern_of(status, "kit", "location")
        assert (off["state"], off["trouble"]) == ("attention", "hosts.device_cloud is not set")
        assert "`cellagent config use public`" in off["try"]
        write_profile(tmp_path, cloud, kits)
        assert (await agent.run("reload")).code == 0
        await agent.until_status(lambda now: phases(now) == ["well", "trouble"])  # not onboarded


async def test_another_profile_is_another_agent(tmp_path: Path, cloud):
    where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)})
    async with kit_to_crash(tmp_path), agent_on(where):
        config = tmp_path / "config.toml"
        config.write_text(config.read_text().replace("bench", "lab"))
        with pytest.raises(AgentRefused, match="runs bench") as refused:
            await send_request(
                Path(os.environ["CELLAGENT_STATE_DIR"]), "bench", ReloadRequest(), Answer
            )
        assert "--profile lab" in refused.value.hint


KEYRING = """
import json, os, pathlib
from keyring.backend import KeyringBackend

FILE = pathlib.Path(os.environ["KEYRING_FILE"])

class Keyring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        return json.loads(FILE.read_text()).get(f"{service} {username}")

    def set_password(self, service, username, password):
        FILE.write_text(json.dumps({f"{service} {username}": password}))
"""
STALE = "project-key-of-before-0123456789"
MENDS_BY_RELOAD = {"file": True, "keyring": True, "systemd": False, "environment": False}


class KeySource:
    """Where an agent has its project key from: each as its user would keep it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.file = folder / ("secrets.toml" if kind == "file" else "kept")
        self.environment: dict[str, str] = {}
        self.extra = ""
        if kind == "systemd":
            self.file = folder / "cellagent.project_key"
            self.environment["CREDENTIALS_DIRECTORY"] = str(folder)
        if kind == "keyring":
            pytest.importorskip("keyring", reason="pip install 'cellagent[keyring]'")
            (folder / "kept_in_a_file.py").write_text(KEYRING)
            self.extra = "[profiles.bench.credentials]\nkeyring = true\n"
            self.environment["PYTHONPATH"] = str(folder)
            self.environment["PYTHON_KEYRING_BACKEND"] = "kept_in_a_file.Keyring"
            self.environment["KEYRING_FILE"] = str(self.file)

    def keep(self, key: str) -> None:
        match self.kind:
            case "file":
                self.file.write_text(f'[bench]\nproject_key = "{key}"\n')
                self.file.chmod(0o600)
            case "systemd":
                self.file.write_text(key)
            case "keyring":
                self.file.write_text(json.dumps({"cellagent bench:project_key": key}))
            case _:
                self.environment["CELLAGENT_PROJECT_KEY"] = key

    def way_out(self) -> list[str]:
        """Return what the agent must say of a key of this source that is refused."""
        return {
            "file": [
                f"project_key is of {self.file}: bench.project_key",
                "`cellagent config set project_key --profile bench`",
                "`cellagent reload --profile bench`",
            ],
            "systemd": ["systemd's cellagent.project_key", "restart the service"],
            "keyring": ["`keyring set cellagent bench:project_key`", "`cellagent reload"],
            "environment": ["set CELLAGENT_PROJECT_KEY", "start `cellagent run"],
        }[self.kind]


@pytest.mark.parametrize("kind", MENDS_BY_RELOAD)
async def test_a_key_that_was_cycled_elsewhere_is_told_with_its_source_and_taken_anew(
    tmp_path: Path, cloud, kind: str
):
    source = KeySource(kind, tmp_path)
    where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)}, source.extra)
    right = where.pop("CELLAGENT_PROJECT_KEY")
    where.pop("CELLAGENT_ORG_TOKEN")
    source.keep(STALE)
    log: list[str] = []
    async with kit_to_crash(tmp_path) as kit:
        async with agent_on({**where, **source.environment}) as agent:
            await agent.until("kit", "link", "well")
            kit.crash()
            told = await agent.until(None, "outbox", "trouble")
            for words in source.way_out():
                assert words in told["try"]
            source.keep(right)
            if MENDS_BY_RELOAD[kind]:
                assert (await agent.run("reload")).code == 0
                assert (await agent.until(None, "outbox", "well"))["trouble"] is None
            assert await agent.stop() == 0
        log += agent.log
        if not MENDS_BY_RELOAD[kind]:
            async with agent_on({**where, **source.environment}) as agent:
                await agent.until_status(
                    lambda status: status["outbox"]["counts"].get("delivered", 0) > 0
                )
                assert await agent.stop() == 0
    assert sum("project_key is" in line for line in log) == 1
    assert STALE not in "".join(log)
    assert right not in "".join(log)
    assert not MENDS_BY_RELOAD[kind] or any("works again" in line for line in log)
