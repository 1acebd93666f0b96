"""Power saving: answers, notices, and timers as bits."""

from __future__ import annotations

import pytest

from at.commands.power_saving import (
    SetEdrx,
    SetPowerSavingMode,
    active_time_seconds,
    periodic_tau_ext_seconds,
    periodic_tau_seconds,
)
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CPSMS?", ['+CPSMS: 1,,,"00000110","00100001"'], {"requested_active_time_s": 60}),
        ("AT+CPSMS?", ["+CPSMS: 0"], {"mode": 0, "requested_active_time": None}),
        ("AT+CEDRXRDP", ['+CEDRXRDP: 4,"0011","0010","1001"'], {"paging_time_window": "1001"}),
        ("AT+CEDRXRDP", ['+CEDRXRDP: 6,"0011","0010","1001"'], {"act_type": 6}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+CEDRXRDP", ['+CEDRXRDP: 2,"0011","0010","1001"']),
        ("AT+CPSMS?", ['+CPSMS: 1,,,"00000110"']),
        ("AT+CPSMS?", ['+CPSMS: 1,"00000110"']),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%XMODEMSLEEP: 1,36000", {"type": 1, "time_ms": 36000}),
        ("%XT3412: 35712000000", {"time_ms": 35712000000}),
        ('+CEDRXP: 4,"0011","0010","1001"', {"act_type": 4}),
        ('+CEDRXP: 6,"0011","0010","1001"', {"act_type": 6}),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize("line", ["%XMODEMSLEEP: 9", "%XT3412: -1", "%XT3412: 35712000001"])
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (SetPowerSavingMode(0), "AT+CPSMS=0"),
        (SetPowerSavingMode(1, "00101000", "00000101"), 'AT+CPSMS=1,,,"00101000","00000101"'),
        (SetEdrx(2, 5, "0011"), 'AT+CEDRXS=2,5,"0011"'),
        (SetEdrx(3, None), "AT+CEDRXS=3"),
        (SetEdrx(), "AT+CEDRXS=2,4"),
        (SetPowerSavingMode(), "AT+CPSMS=1"),
    ],
)
def test_sleep_is_asked_for_in_bits(command, line):
    assert command.encode() == line


@pytest.mark.parametrize("command", [SetPowerSavingMode(1, "0010"), SetEdrx(2, 4, "00a1")])
def test_what_is_no_bits_is_not_sent(command):
    with pytest.raises(UnsafeArgument):
        command.encode()


def test_each_timer_has_its_own_table():
    assert active_time_seconds("00000101") == 10
    assert active_time_seconds("11100000") is None
    units = [active_time_seconds(f"{unit:03b}00001") for unit in range(8)]
    assert units == [2, 60, 360, 60, 60, 60, 60, None]
    units = [periodic_tau_ext_seconds(f"{unit:03b}00001") for unit in range(8)]
    assert units == [600, 3600, 36000, 2, 30, 60, 1152000, None]
    assert periodic_tau_ext_seconds("00010011") == 11400
    assert periodic_tau_ext_seconds("11000001") == 320 * 3600
    assert periodic_tau_seconds("01001001") == 3240
    assert periodic_tau_seconds(None) is None
