"""The walk over the pages of a list."""

from __future__ import annotations

from typing import Any

import pytest

from agent.errors import AgentError
from agent.observability.api.paging import Envelope, Paging, walk


async def test_a_walk_ends_when_the_list_shrinks_and_says_when_it_gets_another_page() -> None:
    def page(number: int, data: list[Any], pages: int = 3) -> Envelope:
        return Envelope(data, Paging(len(data), 9, number, pages, 3))

    async def shrinking(number: int) -> Envelope:
        return page(number, [{"n": number}] if number < 2 else [])

    assert [item async for item in walk(shrinking)] == [{"n": 1}]

    async def stuck(number: int) -> Envelope:
        return page(1, [{"n": 1}])

    with pytest.raises(AgentError, match="asked for page 2, got page 1"):
        [item async for item in walk(stuck)]
