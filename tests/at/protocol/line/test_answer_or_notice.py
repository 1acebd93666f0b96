"""Which lines are an answer and which are notices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.network import ReadConnection
from at.commands.registration import ReadRegistration
from at.protocol.line.answer_or_notice import (
    command_name,
    fields,
    line_name,
    looks_like_notice,
    owner_of,
)


def test_fields_keep_commas_in_quotes_and_empty_places() -> None:
    assert fields('+X: 1,,"a,b" , ,"c') == ["1", "", '"a,b"', "", '"c"']
    assert fields("+X:") == [""]


@given(st.text(max_size=80), st.sampled_from([ReadRegistration(), ReadConnection()]))
def test_whose_line_it_is_can_be_told_of_any_line(text, command):
    assert command.owns(f"{command.prefix}: {text}") in {True, False}


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ("+CEREG: 1", True),
        ('+CEREG: 5,"00B7","00011B07",7', True),
        ("+CEREG: 5,1", False),
        ("+CEREG: 1,0007,00011B07,7", True),
        ('+CEREG: 2,001,"0007","00011B07",7', False),
        ("+CEREG: (0-5)", False),
        ("+CSCON: 1,7,4", True),
        ("+CSCON: 1,1", False),
        ("#XGNSS: 1,1", True),
        ("#XSMVER: 1", False),
        ("%CESQ: 54,2,16,2", True),
        ("%XVBAT: 5000", False),
        ("OK", False),
    ],
)
def test_a_line_that_can_only_be_a_notice_is_known_without_its_command(line, notice):
    assert looks_like_notice(line) is notice


@pytest.mark.parametrize(
    ("command", "line", "owns"),
    [
        ("AT+CEREG?", "+CEREG: 5,1", True),
        ("AT+CEREG?", "+CEREG: 5", False),
        ("AT+CEREG=5", "+CEREG: 5,1", False),
        ("AT+CEREG=?", "+CEREG: (0-5)", True),
        ("AT+CSCON?", "+CSCON: 1,0", True),
        ("AT+CSCON?", "+CSCON: 1,7,4", False),
        ("AT%CESQ=1", "%CESQ: 54,2,16,2", False),
        ("AT%XTEMP=1", "%XTEMP: 2,85", False),
        ("AT%XTEMP?", "%XTEMP: 2,85", False),
        ("AT%XTEMP?", "%XTEMP: 24", True),
        ('AT+CEDRXS=2,4,"0101"', '+CEDRXS: 4,"0101","0101","0011"', False),
        ("AT+CEDRXS?", '+CEDRXS: 4,"0101"', True),
        ('AT%XSUDO=4,"QUJD";%CMNG=1', "%CMNG: 1,0", True),
    ],
)
def test_the_text_of_a_command_settles_which_lines_are_its_answer(command, line, owns):
    owner = owner_of(command)
    assert owner.name == line_name(line)
    assert owner.owns(line) is owns


@given(st.text(max_size=30))
def test_a_name_is_what_precedes_a_colon_and_nothing_else(text):
    name = line_name(text)
    assert not name or text.startswith(name + ":")
    assert command_name(f"AT{name}=1") == name.upper()
