"""What tells an answer from one that came twice."""

from __future__ import annotations

import itertools

import pytest

from at.protocol.line.doubled_answers import COPY_S, RecentAnswers, expects_line, tells_more
from at.protocol.line.items import Answer

OK = Answer((), "OK", command="AT+A=1")
ERROR = Answer((), "ERROR", command="AT+A=1")


@pytest.mark.parametrize(
    ("answer", "expects", "may_be"),
    [
        (Answer((), "OK", command="AT+B=1"), False, False),
        (Answer((), "OK", command="AT+B?"), True, True),
        (Answer((), "ERROR", command="AT+B?"), False, True),
        (Answer((), "+CME ERROR", 513, command="AT+B?"), False, False),
        (Answer(("x",), "OK", command="AT+C"), False, True),
        (Answer(("x",), "OK", command="AT+B"), False, False),
    ],
)
def test_what_is_told_by_the_time_is_told_for_as_long_as_a_copy_may_come(
    answer: Answer, expects: bool, may_be: bool
) -> None:
    recent = RecentAnswers()
    recent.come_twice = True
    for earlier in (OK, ERROR, Answer(("x",), "OK", command="AT+B")):
        recent.add(earlier, 1.0)
    assert recent.may_be_copy(answer, 1.0 + 0.9 * COPY_S, expects_line=expects) is may_be
    assert not recent.may_be_copy(answer, 1.0 + COPY_S, expects_line=expects)


@pytest.mark.parametrize("later_s", [0.0, 0.9 * COPY_S, COPY_S, 3600.0])
def test_one_wait_in_vain_tells_that_answers_do_not_come_twice_and_no_time_does(
    later_s: float,
) -> None:
    recent = RecentAnswers()
    recent.add_named("+A: 1", 1.0)
    recent.add(ERROR, 1.0)
    refused = Answer((), "ERROR", command="AT+B?")
    assert not recent.may_be_copy(Answer(("+A: 1",), "OK"), 1.0 + later_s, expects_line=False)
    assert recent.may_be_copy(refused, 1.0 + later_s, expects_line=False)
    recent.waited_in_vain(OK)
    assert recent.may_be_copy(refused, 1.0 + later_s, expects_line=False)
    recent.waited_in_vain(refused)
    assert not recent.may_be_copy(refused, 1.0 + later_s, expects_line=False)
    recent.add_stray("OK", 1.0 + later_s)
    assert recent.come_twice


def test_lines_of_ones_own_name_tell_more_than_a_refusal_and_that_more_than_ok() -> None:
    answers = [OK, Answer(("x",), "OK"), ERROR, Answer(("+A: 1",), "OK")]
    for low, high in itertools.pairwise(answers):
        assert tells_more(high, low)
        assert not tells_more(low, high)


@pytest.mark.parametrize(
    ("command", "expects"),
    [("AT+A?", True), ("AT+A=?", True), ("AT+A", True), ("AT+A=1", False), ("AT", False)],
)
def test_set_commands_answer_ok_alone(command: str, expects: bool) -> None:
    assert expects_line(command) is expects
