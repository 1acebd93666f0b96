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


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("70/01/01,00:00:05+00", 1970),
        ("69/12/31,16:00:05-32", 1969),
        ("80/01/06,00:20:00+36", 1980),
        ("00/01/01,00:00:05+00", 2000),
        ("15/01/01,00:00:05+00", 2015),
    ],
)
def test_a_clock_that_runs_on_from_where_its_maker_has_it_begin_was_not_set(text, year):
    clock = read_clock(text)
    assert (clock.local_time.year, clock.is_set) == (year, False)


@pytest.mark.parametrize("text", ["16/01/01,00:00:00+00", "68/12/31,23:59:59+00"])
def test_a_clock_of_any_other_year_was_set(text):
    assert read_clock(text).is_set
