from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.commands.running_agent import Served, end_all, serve, virtual_kit


@pytest.fixture(autouse=True)
async def served_until_the_end() -> AsyncIterator[None]:
    """End the kits and clouds that a test had served, however the test ends."""
    yield
    await end_all()


@pytest.fixture
async def cloud(tmp_path: Path) -> Served:
    """The stand-in cloud, with its state in FOLDER/cloud.state."""
    return await serve("cloud", "serve", "--state", str(tmp_path / "cloud.state"))


@pytest.fixture
async def kit(tmp_path: Path) -> Served:
    """A virtual kit on FOLDER/kit."""
    return await virtual_kit(tmp_path)
