"""The SIM."""

from __future__ import annotations

import pytest

from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CPIN?", ["+CPIN: READY"], {"code": "READY"}),
        ("AT+CIMI", ["001010123456789"], {"imsi": "001010123456789"}),
        ("AT%XICCID", ["%XICCID: 8988000000000000001F"], {"iccid": "8988000000000000001"}),
        ("AT%XSIM?", ["%XSIM: 0,1"], {"state": 0, "cause": 1}),
        ("AT%XSIM?", ["%XSIM: 0,255"], {"cause": 255, "cause_text": None}),
        ("AT+CPIN?", ["+CPIN: PH-SIM PIN"], {"code": "PH-SIM PIN"}),
        (
            'AT+CPINR="SIM PIN"',
            ['+CPINR: "SIM PIN",255,0', '+CPINR: "SIM PUK",0,255'],
            {
                "codes": [
                    {"code": "SIM PIN", "retries": 255, "default_retries": 0},
                    {"code": "SIM PUK", "retries": 0, "default_retries": 255},
                ]
            },
        ),
        ("AT+CRSM=176,1,0,0,2", ["+CRSM: 144, 0, 00FF"], {"sw1": 144, "response": "00FF"}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT%XICCID", ["%XICCID: 12345"]),
        ("AT+CRSM=1", ["+CRSM: 144,0,0FF"]),
        ("AT+CPIN?", ["+CPIN: SIM"]),
        ("AT+CPIN?", ["+CPIN: PH- PIN"]),
        ('AT+CPINR="SIM PIN"', ['+CPINR: "SIM PIN",3,256']),
        ('AT+CPINR="SIM PIN"', []),
        ("AT+CIMI", ["12345"]),
        ("AT+CIMI", ["1234567890123456"]),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(("line", "part"), [("%XSIM: 1", {"state": 1})])
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line", ["%XSIM: x", "%XSIM: 0,", "%XSIM: 1,9", "%XSIM: 2", "%XSIM: 0,256"]
)
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


def test_each_cause_has_its_words():
    words = [notice_value(f"%XSIM: 0,{cause}")["cause_text"] for cause in range(13)]
    assert words == [
        None,
        *("PIN required", "PIN2 required", "PUK required", "PUK2 required"),
        *("PUK blocked", "PUK2 blocked", "device personalisation blocked", "IMEI lock blocked"),
        *("SIM failure, or no SIM", "SIM changed", "SIM profile changed"),
        None,
    ]
