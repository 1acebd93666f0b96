"""Numbers on the command line: what is refused says what is wanted."""

from __future__ import annotations

import pytest

from tests.support.commands.command_line import cellagent


@pytest.mark.parametrize("typed", ["nan", "inf", "1e300", "-1", "soon"])
async def test_what_is_no_time_is_refused(typed: str) -> None:
    refused = await cellagent("modem", "on", "--port", "virtual:", "--deadline", typed)
    assert refused.code == 2
    assert "Invalid value for '--deadline'" in refused.err
    assert "range." not in refused.err  # as if a range were wanted


async def test_what_is_no_integer_is_told_so() -> None:
    refused = await cellagent("provision", "run", "--expect", "two")
    assert "'two' is not a valid integer." in refused.err
