"""The clock with a zone in quarters of an hour."""

from __future__ import annotations

import pytest

from at.commands.clock import clock_text, read_clock
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+CCLK?", ['+CCLK: "XX/XX/XX,XX:XX:XX+XX"']),
        ("AT+CCLK?", ['+CCLK: "24/13/01,00:00:00+00"']),
        ("AT+CCLK?", ['+CCLK: "24/12/01,00:00:00+96"']),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("line", "part"),
    [('%XTIME: ,"62200141352180","01"', {"tz": None, "utc_time": "2026-02-10T14:53:12+00:00"})],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize("line", ['%XTIME: "08","622001413521","01"'])
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


def test_clocks_are_local_time_with_a_zone_in_quarters():
    clock = read_clock("26/02/10,23:53:12+36")
    assert clock.utc_time.isoformat() == "2026-02-10T14:53:12+00:00"
    assert clock_text(clock.local_time) == "26/02/10,23:53:12+36"
    assert read_clock("14/08/05,04:00:21").utc_time is None
    assert value_of("AT+CCLK?", "+CCLK:   17/07/26,11:42:15+01")["zz"] == 1
