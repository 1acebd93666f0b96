"""Updates by the Serial Modem."""

from __future__ import annotations

import pytest

from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT#XFOTA?", ["#XFOTA: 1,0,50"], {"stage": 1, "status": 0, "info": 50}),
        ("AT#XFOTA=7", ["#XFOTA: 2097152,2621440"], {"size": 2097152, "offset": 2621440}),
        ("AT#XFOTA=7", ["#XFOTA: 100,2621440"], {"size": 100, "offset": 2621440}),
        ("AT#XBOOTINFO=0", ["#XBOOTINFO: 1"], {"value": 1, "version": 1, "slot": None}),
        ("AT#XBOOTINFO=1", ["#XBOOTINFO: 1"], {"value": 1, "version": None, "slot": 1}),
        ("AT#XBOOTINFO=7", ["#XBOOTINFO: 1"], {"value": 1, "version": None, "slot": None}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("#XFOTA: 1,0,42", {"stage": 1, "info": 42}),
        ("#XDFU: 0,1,-1", {"operation": 1, "status": -1}),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


def test_there_are_two_slots():
    with pytest.raises(ParseError):
        value_of("AT#XBOOTINFO=1", "#XBOOTINFO: 2")


@pytest.mark.parametrize("line", ["#XFOTA: 9,0"])
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)
