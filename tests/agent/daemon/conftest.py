from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from running_agent import end_all


@pytest.fixture(autouse=True)
async def served_until_the_end() -> AsyncIterator[None]:
    """End the kits and clouds that a test had served, however the test ends."""
    yield
    await end_all()
