"""A line as a terminal would show it: what was coloured, typed again or erased."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.transcripts.logs.lines import Side
from at.transcripts.logs.reader import read_log
from at.transcripts.logs.terminal import shown

LOG = "[00:00:02.500,000] <inf> app: beat"


@pytest.mark.parametrize(
    ("line", "screen"),
    [
        ("AT+CFX\b \bUN?", "AT+CFUN?"),
        ("AT+CEXX?\x1b[3D\x1b[KREG?", "AT+CEREG?"),
        ("AT+XFUN\x1b[4D\x1b[1CFUN", "AT+XFUN"),
        (f"uart:~$ at AT+CE\x1b[16D\x1b[J{LOG}", LOG),
        (f"\x1b[8D\x1b[J{LOG}", LOG),
        (f"[8D[J{LOG}", LOG),
        (f"[JJ[JJ{LOG}", LOG),
        ("[1;32muart:~$ [mat AT+CFUN?", "uart:~$ at AT+CFUN?"),
        ("^[[1;32muart:~$ ^[[mat AT+CFUN?", "uart:~$ at AT+CFUN?"),
        ("\\x1b[31m+CEREG: 3\\033[0m", "+CEREG: 3"),
        ("[1B][1;32muart:~$ [1B][m[1B][8D[1B][J[1B][31m+CEREG: 3[1B][0m", "+CEREG: 3"),
        ("←[31m+CEREG: 3←[0m", "+CEREG: 3"),
        ("\x1b[9999999999999999999D\x1b[;Dat", "at"),
    ],
)
def test_what_was_coloured_typed_again_or_erased_is_not_on_the_screen(
    line: str, screen: str
) -> None:
    assert shown(line) == screen


@pytest.mark.parametrize(
    "line",
    [
        "[modem0/at] --> 'AT<CR>'",
        "[Jan 02 12:00:00] AT",
        "[Mon Feb 02 12:00:00 2026] AT",
        "←[OK]",
        "[AT+CFUN?]",
        "{+CFUN: 1}",
        "$ [mine] AT+X[1]",
    ],
)
def test_brackets_of_a_log_are_none_of_a_terminal(line: str) -> None:
    assert shown(line) == line


@given(text=st.text(st.sampled_from("\x1b[]?;0189DCJKmhAT+\b ^"), max_size=40))
def test_no_sequence_makes_a_line_longer(text: str) -> None:
    assert len(shown(text)) <= len(text)
    assert "\b" not in shown(text)


def test_colours_whose_first_character_a_forum_lost_hide_no_mark() -> None:
    log = (
        "[00:00:01.250,000] [1;33m<wrn> at: AT> AT+CFUN=1[0m\n"
        "[00:00:01.500,000] [1;33m<wrn> at: AT< OK[0m\n"
    )
    assert [(line.side, line.text) for line in read_log(log.encode()).lines] == [
        (Side.SENT, "AT+CFUN=1"),
        (Side.RECEIVED, "OK"),
    ]
