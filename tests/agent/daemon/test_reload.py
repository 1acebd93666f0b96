"""`cellagent reload`: what can fail is tried first, then everything is taken."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_agent import RunningAgent, agent_on, kit_keys, kit_to_crash, serve, write_profile

from agent.daemon.control.client import AgentRefused, send_request
from agent.daemon.control.protocol import Answer, ReloadRequest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def free_port() -> int:
    with taken_port() as port:
        return port


def served(port: int) -> bool:
    """Tell whether metrics are served at a port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return b"cellagent_well" in answer.read()
    except urllib.error.URLError:
        return False


def metrics_at(port: int) -> str:
    return f'[profiles.bench.metrics]\nlisten = "127.0.0.1:{port}"\n'


async def kits_of(agent: RunningAgent) -> list[str]:
    status = json.loads((await agent.run("status", "--json")).out)
    return [kit["name"] for kit in status["kits"]]


@pytest.fixture
async def cloud():
    found = await serve("cloud", "serve")
    return found.ready


async def test_metrics_move_and_a_place_that_is_taken_changes_nothing(tmp_path: Path, cloud):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    one_kit = {"kit": kit_keys(tmp_path)}
    two_kits = {**one_kit, "other": kit_keys(tmp_path, "other")}
    first, second = free_port(), free_port()
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


async def test_a_key_that_was_cycled_elsewhere_is_told_with_its_name_and_mended_by_a_reload(
    tmp_path: Path, cloud
):
    where = write_profile(tmp_path, cloud, {"kit": kit_keys(tmp_path)})
    right = where.pop("CELLAGENT_PROJECT_KEY")
    where.pop("CELLAGENT_ORG_TOKEN")
    secrets = tmp_path / "secrets.toml"

    def set_key(key: str) -> None:
        secrets.write_text(f'[bench]\nproject_key = "{key}"\n')
        secrets.chmod(0o600)

    set_key("project-key-of-before-0123456789")
    async with kit_to_crash(tmp_path) as kit, agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        kit.crash()
        told = await agent.until(None, "outbox", "trouble")
        assert f"project_key is of {secrets}: bench.project_key" in told["try"]
        assert "`cellagent config set project_key --profile bench`" in told["try"]
        assert "`cellagent reload --profile bench`" in told["try"]
        set_key(right)
        assert (await agent.run("reload")).code == 0
        assert (await agent.until(None, "outbox", "well"))["trouble"] is None
        assert await agent.stop() == 0
    said = [line for line in agent.log if "project_key is of" in line]
    assert len(said) == 1
    assert any("works again" in line for line in agent.log)
