"""The transport of these tests: its deadlines are short."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent.http import Deadlines, HttpTransport


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    made = HttpTransport(deadlines=Deadlines(connect_s=5, read_s=5, whole_s=10))
    yield made
    await made.close()
