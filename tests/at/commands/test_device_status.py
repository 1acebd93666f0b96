"""Supply, temperature and events of the modem."""

from __future__ import annotations

import pytest

from at.commands.device_status import ReadTemperature
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT%XVBAT", ["%XVBAT: 5054"], {"vbat_mv": 5054}),
        ("AT%XVBAT", ["%XVBAT: 100000"], {"vbat_mv": 100000}),
        ("AT%XTEMP?", ["%XTEMP: -100"], {"temperature_c": -100}),
        ("AT%XTEMP?", ["%XTEMP: -24"], {"temperature_c": -24}),
        ("AT%XVBATLOWLVL?", ["%XVBATLOWLVL: 3100"], {"supply_mv": 3100}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%MDMEV: PRACH CE-LEVEL 0", {"text": "PRACH CE-LEVEL 0"}),
        ("%XTEMP: 3,91", {"level": 3, "temperature_c": 91}),
        ("%XVBATLOWLVL: 3000", {"supply_mv": 3000}),
        ('%RAI: 1,"2",,x', {"values": [1, "2", None, "x"]}),
        ("%XPOFWARN:", {"voltage": None, "level_mv": None}),
        ("%XVBATLOWLVL: 0", {"supply_mv": 0}),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line", ["%MDMEV:", "%XTEMP: 85", "%XTEMP: 4,91", "%XVBATLOWLVL: 310", "%XVBATLOWLVL: 5001"]
)
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


@pytest.mark.parametrize(
    ("command", "line"),
    [("AT%XVBAT", "%XVBAT: 100001"), ("AT%XTEMP?", "%XTEMP: -101"), ("AT%XTEMP?", "%XTEMP: 301")],
)
def test_a_malformed_answer_is_refused_whole(command, line):
    with pytest.raises(ParseError):
        value_of(command, line)


def test_a_temperature_with_its_level_is_a_notice_and_no_answer():
    assert ReadTemperature().owns("%XTEMP: 24")
    assert not ReadTemperature().owns("%XTEMP: 2,24")


def test_a_level_below_what_can_be_set_is_refused():
    with pytest.raises(ParseError, match="below 3100"):
        value_of("AT%XVBATLOWLVL?", "%XVBATLOWLVL: 0")
