"""The table of dialects: its names, and what a reply gives away."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.dialect import (
    PROMPTS,
    START_LINES,
    TRAITS,
    Dialect,
    DialectName,
    Terminator,
    TerminatorName,
    recognised,
    unwrapped,
)


def test_every_dialect_has_its_facts_and_a_name_to_ask_for_it() -> None:
    assert set(TRAITS) == set(Dialect)
    assert get_args(DialectName) == ("auto", *(dialect.value for dialect in Dialect))
    assert get_args(TerminatorName) == ("auto", *(end.value for end in Terminator))


@pytest.mark.parametrize(
    ("reply", "dialect"),
    [
        (b"+CMEE: 1\r\nOK\r\n", Dialect.AT_HOST),
        (b"ERROR\r\n", Dialect.AT_HOST),
        (b"", Dialect.AT_HOST),
        (b"\r\n+CMEE: 1\r\n\r\nOK\r\n", Dialect.SERIAL_MODEM),
        (b"\r\nOK\r\n", Dialect.SERIAL_MODEM),
        (b"AT+CMEE?\r\r\n+CME ERROR: 0\r\n", Dialect.SERIAL_MODEM),
        (b"AT+CMEE?\r\nAT+CMEE?: command not found\r\nuart:~$ ", Dialect.SHELL),
        (b"\r\n\r\nOK\r\nmosh:~$ ", Dialect.SHELL),
    ],
)
def test_a_reply_gives_its_dialect_away(reply: bytes, dialect: Dialect) -> None:
    assert recognised(reply) is dialect


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
def test_the_echo_of_a_wrapped_command_gives_it_back(arguments: str) -> None:
    command = f"AT+X={arguments}"
    assert unwrapped(Dialect.SHELL.typed(command)) == command
    assert unwrapped(command) is None
    assert Dialect.AT_HOST.typed(command) == Dialect.SERIAL_MODEM.typed(command) == command


def test_a_wrapped_command_is_one_line() -> None:
    assert Dialect.SHELL.typed('AT%CMNG=0,1,0,"a\r\nb"') == "at 'AT%CMNG=0,1,0,\"a\\nb\"'"


def test_prompts_and_start_lines_are_known_where_the_dialect_is_not() -> None:
    assert PROMPTS.match(b"uart:~$ uart:~$ OK").group() == b"uart:~$ uart:~$ "  # type: ignore[union-attr]
    assert {"Ready", "INIT ERROR"} <= START_LINES


def test_a_console_that_ends_no_line_is_read_in_linear_time() -> None:
    assert recognised(b"x" * 200_000) is Dialect.AT_HOST  # minutes, if each x began a prompt
