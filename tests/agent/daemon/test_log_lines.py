"""Which lines are written: each in full once an hour, a few times more in short, then counted."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from agent.daemon.log_lines import (
    AGAIN_S,
    MOST_AGAIN,
    MOST_LINES,
    AdviceOnce,
    LineLimit,
    RepeatedLines,
)

ADVISED = "no answer after 3 s; try: plug it in"


def test_a_repeated_line_is_told_in_full_once_an_hour_with_how_often_it_came_meanwhile():
    limit = LineLimit()
    lines = [limit.admit(ADVISED.replace("3", str(number)), number) for number in range(20)]
    short = [f"no answer after {number} s (again)" for number in range(1, 1 + MOST_AGAIN)]
    assert [line for line in lines if line] == [ADVISED.replace("3", "0"), *short]
    hidden = 19 - MOST_AGAIN
    assert limit.admit(ADVISED, AGAIN_S) == (
        f"no answer after 3 s (and {hidden} times more in the hour before); try: plug it in"
    )


def test_lines_that_all_differ_are_bounded_too():
    limit = LineLimit()
    told = [limit.admit("x" * number, 1.0) for number in range(200)]
    assert sum(line is not None for line in told) == MOST_LINES


@given(st.lists(st.integers(-5000, 5000), min_size=100, max_size=300))
def test_whatever_the_clock_does_what_is_remembered_is_bounded(steps: list[int]):
    limit, once, now = LineLimit(), AdviceOnce(), 0
    for number, step in enumerate(steps, 1):
        now += step
        limit.admit("x" * number, now)
        once.admit(f"it; try: {'x' * number}", now)
    assert len(limit._told) <= 64
    assert len(once._told) <= 64


def test_a_clock_that_is_set_back_silences_nobody():
    limit = LineLimit()
    for number in range(1, 1 + MOST_LINES):
        limit.admit("x" * number, 10_000.0)
    assert limit.admit("new", 10_000.0) is None
    assert limit.admit("new", 0.0) == "new"
    assert limit.admit("x", 0.0) == "x"


def test_short_repetitions_count_among_the_lines_too():
    limit = LineLimit()
    for number in range(1, 1 + MOST_LINES):
        assert limit.admit("x" * number, 1.0)
    assert limit.admit("x", 1.0) is None


def test_advice_is_given_once_an_hour_whoever_gives_it():
    once = AdviceOnce()
    assert once.admit(ADVISED, 1e9) == ADVISED
    told = datetime.fromtimestamp(1e9, UTC).astimezone()
    assert once.admit("busy; try: plug it in", 1e9 + 10) == (
        f"busy (what to try: see {told:%H:%M:%S})"
    )
    for now in (1e9 + AGAIN_S, 1e9 - 5):
        assert once.admit("busy; try: plug it in", now) == "busy; try: plug it in"
    for _ in range(2):
        assert once.admit("no advice", 1e9) == "no advice"


def test_a_record_with_arguments_is_limited_by_what_it_says():
    record = logging.makeLogRecord({"levelno": 30, "msg": "100 %% of %s", "args": ("it",)})
    assert RepeatedLines().filter(record)
    assert record.getMessage() == "100 % of it"


def test_what_no_concern_logs_is_limited_and_a_concern_is_left_to_itself():
    limit = RepeatedLines()
    records = [logging.makeLogRecord({"levelno": 30, "msg": "late"}) for _ in range(50)]
    assert sum(limit.filter(record) for record in records) == 1 + MOST_AGAIN
    own = logging.makeLogRecord({"levelno": 30, "msg": "late", "concern": "link"})
    assert limit.filter(own)
