"""Which lines are written: each in full once an hour, a few times more in short, then counted."""

from __future__ import annotations

import logging

from hypothesis import given
from hypothesis import strategies as st

from agent.daemon.log_lines import AGAIN_S, MOST_AGAIN, MOST_LINES, LineLimit, RepeatedLines

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


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5000, 5000)), max_size=300))
def test_whatever_the_clock_does_what_is_remembered_is_bounded(steps: list[tuple[str, int]]):
    limit, now = LineLimit(), 0
    for line, step in steps:
        now += step
        limit.admit(line, now)
    assert len(limit._told) <= 64


def test_what_no_concern_logs_is_limited_and_a_concern_is_left_to_itself():
    limit = RepeatedLines()
    records = [logging.makeLogRecord({"levelno": 30, "msg": "late"}) for _ in range(50)]
    assert sum(limit.filter(record) for record in records) == 1 + MOST_AGAIN
    own = logging.makeLogRecord({"levelno": 30, "msg": "late", "concern": "link"})
    assert limit.filter(own)
