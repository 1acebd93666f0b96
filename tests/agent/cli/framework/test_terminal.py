"""Bars and tables for people."""

from __future__ import annotations

import pytest

from agent.cli.framework.terminal import bar


@pytest.mark.parametrize(
    ("value", "drawn"),
    [(None, "····"), (True, "····"), (-140, "····"), (-200, "····"), (-105, "██··"), (0, "████")],
)
def test_a_bar_is_as_wide_whatever_it_shows(value: object, drawn: str) -> None:
    assert bar(value, -140, -70, 4) == drawn
