"""While the agent runs the outbox is its own: commands have it list, send and drop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from running_agent import agent_on, serve, write_profile

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals to processes")

NAMES = ("--device-serial", "kit-1", "--hardware-version", "nrf9161dk", "--software-type", "main")
EVENT = ("report", "event", *NAMES, "--software-version", "1.0.0", "--metric", "number=1")


async def test_what_waits_is_listed_dropped_and_sent_by_the_agent(tmp_path: Path) -> None:
    cloud = await serve("cloud", "serve")
    environment = write_profile(tmp_path, cloud.ready, {"kit": {"port": str(tmp_path / "kit")}})
    await cloud.kill()  # so that events wait
    async with agent_on(environment) as agent:
        for _ in range(2):
            assert (await agent.run(*EVENT)).code == 0
        await agent.until_status(lambda status: status["outbox"]["waiting"] == 2)
        listed = await agent.run("outbox", "list", "--json")
        *items, summary = listed.lines
        assert (listed.code, len(items), summary["summary"]["waiting"]) == (0, 2, 2)
        dropped = await agent.run("outbox", "drop", str(items[0]["id"]), "--json")
        assert dropped.lines == [{"dropped": 1}]
        flushed = await agent.run("outbox", "flush", "--json")
        assert flushed.lines == [{"delivered": None, "waiting": 1, "parked": 0}]
        refused = await agent.run("outbox", "drop", "--json")
        assert (refused.code, refused.lines[0]["error"]["kind"]) == (2, "usage")
        assert await agent.stop() == 0
