from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.commands.running_agent import (
    RunningAgent,
    agent_on,
    kit_keys,
    kit_to_crash,
    serve,
    write_profile,
)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[RunningAgent]:
    """An agent that holds the virtual kit on FOLDER/kit, and the stand-in."""
    cloud = await serve("cloud", "serve")
    where = write_profile(tmp_path, cloud.ready, {"kit": kit_keys(tmp_path)})
    async with kit_to_crash(tmp_path), agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        yield agent
