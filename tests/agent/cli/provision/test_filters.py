"""`--since TIME`: what people write for a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.cli.provision.filters import OUTCOMES, moment, since
from tests.support.commands.command_line import completed

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8h", NOW - timedelta(hours=8)),
        ("30m", NOW - timedelta(minutes=30)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(days=14)),
        ("2026-03-31T06:00+02:00", datetime(2026, 3, 31, 4, tzinfo=UTC)),
        ("2026-03-31T06:00:01Z", datetime(2026, 3, 31, 6, 0, 1, tzinfo=UTC)),
        ("2026-03-31", datetime.fromisoformat("2026-03-31").astimezone(UTC)),
    ],
)
def test_a_time_is_a_time_a_day_or_so_long_ago(text: str, found: datetime) -> None:
    assert moment(text, NOW) == found


@given(st.integers(10**9, 4 * 10**9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)))
def test_every_time_that_the_ledger_prints_is_taken(when: datetime) -> None:
    assert moment(when.isoformat(), NOW) == when


@given(st.text(max_size=12))
@example("999999w")
@example("0001-01-01")
@example("9999-12-31T23:59-23:59")
@example("")
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    said = ""
    try:
        found = since(text)
    except click.BadParameter as wrong:
        found, said = NOW, str(wrong)
    assert found.tzinfo is not None
    assert "2026-03-31" in said or not said


@pytest.mark.parametrize("command", ["status", "export"])
def test_an_outcome_that_there_is_none_of_is_told_and_gives_no_empty_list(command: str) -> None:
    run = completed("provision", command, "--outcome", "dnoe")
    assert run.returncode == 2
    assert "'dnoe' is not one of 'done'" in run.stderr
    page = (Path(__file__).parents[4] / "docs/reference/ledger.md").read_text()
    listed = page[page.index("Outcomes: ") : page.index("### Reason codes")]
    assert set(OUTCOMES) == set(re.findall(r"`([a-z]+)`", listed))
