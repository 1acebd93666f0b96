"""Operators, scans and the connection of many vendors."""

from __future__ import annotations

import pytest

from at.commands.network import ReadConnection
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+COPS?", ["+COPS: 0"], {"mode": 0, "oper": None}),
        ("AT+COPS?", ['+COPS: 0,2,"00101",7'], {"oper": "00101", "act": 7}),
        ("AT+COPS=?", ["+COPS: "], {"networks": []}),
        ("AT%COPS=?", ['%COPS: (1,"","","00101",9)'], {}),
        ("AT+CSCON?", ["+CSCON: 1,1,7,4"], {"n": 1, "mode": 1, "state": 7, "access": 4}),
        ("AT+CEMODE=?", ["+CEMODE: (0,2)"], {"modes": [0, 2]}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+COPS=?", ['+COPS: (1,"a","b"']),
        ("AT+COPS=?", ['+COPS: (1,"a")']),
        ("AT+CSCON?", ["+CSCON: 1,2"]),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("line", "part"), [("+CSCON: 1,7,4", {"mode": 1, "state": 7, "access": 4})]
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize("line", ["+CSCON: 2"])
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


@pytest.mark.parametrize(
    ("line", "networks"),
    [
        ('(2,"A","B","31026",0),(1,"C, D","","310410"),2),(1,"E",,"00101"),,(0, 1,3),(0-2)', 3),
        ('(1,"A","B","31026",0),,(0,1,2,3,4),)', 1),
        ('(1,"A","B","31026",0),', 1),
        ('(1,"A","B","31026",0),,)', 1),
        ("(0,1,2,3),(1,2,3,4)", 0),
        ('(0,"A","B","310410",2)', 1),
    ],
)
def test_scans_of_many_vendors_are_read(line, networks):
    assert len(value_of("AT+COPS=?", f"+COPS: {line}")["networks"]) == networks


def test_a_notice_of_the_same_name_is_not_the_reply():
    assert not ReadConnection().owns("+CSCON: 1")
    assert not ReadConnection().owns("+CSCON: 1,7,4")
    assert ReadConnection().owns("+CSCON: 1,0")
