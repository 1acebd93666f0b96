"""Resynchronisation: what is written, and when nothing older can follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.dialect import Dialect, Terminator
from at.protocol.line.answer_or_notice import command_name
from at.protocol.line.items import Answer
from at.protocol.line.resynchronisation import (
    ATTEMPTS,
    POISON,
    PROBES,
    OutstandingCommands,
    abort_sequences,
)

SENT = st.lists(st.sampled_from([*PROBES, "AT+CGMR", "AT+CEREG?", "AT"]), max_size=8)


def answer_to(command: str) -> Answer:
    return Answer((f"{command_name(command)}: 1",), "OK")


@given(SENT)
def test_a_probe_has_a_name_that_no_outstanding_command_has_while_there_is_one(
    sent: list[str],
) -> None:
    outstanding = OutstandingCommands()
    for command in sent:
        outstanding.add(command)
    probe = outstanding.choose_probe()
    assert not outstanding.includes(command_name(probe)) or set(PROBES) <= set(sent)


@given(SENT)
def test_in_order_the_answer_to_the_last_command_settles_all(sent: list[str]) -> None:
    outstanding = OutstandingCommands()
    for command in sent:
        outstanding.add(command)
    probe = outstanding.choose_probe()
    outstanding.add(probe)
    late = [answer_to(command) for command in [*sent, probe] if command_name(command)]
    settled = [outstanding.settled_by(answer) for answer in late]
    assert settled[-1]
    first = settled.index(True)
    # It is settled early only by an answer of the probe's own name.
    assert first == len(late) - 1 or late[first].lines == late[-1].lines


def test_a_refusal_settles_nothing() -> None:
    outstanding = OutstandingCommands()
    outstanding.add("AT+CMEE?")
    assert not outstanding.settled_by(Answer((), "ERROR"))
    assert not outstanding.settled_by(Answer(("+CMEE: 1",), "ERROR"))
    assert outstanding.includes("+CMEE")
    outstanding.clear()
    assert outstanding.settled_by(Answer((), "OK"))


@pytest.mark.parametrize("terminator", Terminator)
@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_what_is_held_is_ended_as_an_error_and_every_third_way_is_tried(
    attempt: int, terminator: Terminator
) -> None:
    for dialect in (Dialect.AT_HOST, Dialect.SERIAL_MODEM):
        written = abort_sequences(attempt, terminator, dialect, data_mode=False)
        assert written[-1].endswith(POISON + terminator.wire)
        assert written[-1].startswith(b"\x1b") == (attempt == 2)
        assert written[-1].removeprefix(b"\x1b").startswith(b'"') == (attempt > 0)
        assert (written[0] == b"+++") == (attempt == 2)
    assert abort_sequences(attempt, terminator, Dialect.SHELL, data_mode=True) == [
        POISON + terminator.wire
    ]


def test_data_mode_is_left_at_every_attempt_where_it_is_known() -> None:
    for attempt in range(ATTEMPTS):
        written = abort_sequences(attempt, Terminator.CR, Dialect.SERIAL_MODEM, data_mode=True)
        assert written[0] == b"+++"
