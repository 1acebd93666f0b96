"""System mode, bands and statistics."""

from __future__ import annotations

import pytest

from at.commands.system_mode import SetSystemMode
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 0,0,0,0,1"], {"ntn_nb_iot": 1}),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,1,0"], {"lte_m": 1, "gnss": 1}),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "",""'], {"permanent": None, "run_time": None}),
        (
            "AT%XBANDLOCK?",
            ['%XBANDLOCK: "1000","0001000000001001"'],
            {"permanent": [4], "run_time": [1, 4, 13]},
        ),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "","23,255,256"'], {"run_time": [23, 255, 256]}),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "","1"'], {"run_time": [1]}),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "2","85"'], {"permanent": [2], "run_time": [85]}),
        ("AT%XBANDLOCK?", [f'%XBANDLOCK: "1{"0" * 255}",""'], {"permanent": [256]}),
        ("AT%XCBAND=?", ["%XCBAND: (1,2,13)"], {"bands": [1, 2, 13]}),
        ("AT%XCBAND=?", ["%XCBAND: (1-3,256)"], {"bands": [1, 2, 3, 256]}),
        ("AT%XCONNSTAT?", ["%XCONNSTAT: 2,3,45,60,708,650"], {"data_rx": 60}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "1000"']),
        ("AT%XBANDLOCK?", ["%XBANDLOCK: 1000,1000"]),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "","1002"']),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "","23,257"']),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,2,0"]),
        ("AT%XSYSTEMMODE?", ["%SYSTEMMODE: 1,0,1,0"]),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 0,0,0,0"]),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,1,0,2"]),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,1"]),
        ("AT%XSYSTEMMODE?", ["%XSYSTEMMODE: 1,0,1,,1"]),
        ("AT%XBANDLOCK?", [f'%XBANDLOCK: "1{"0" * 256}",""']),
        ("AT%XBANDLOCK?", ['%XBANDLOCK: "","023"']),
        ("AT%XCBAND=?", ["%XCBAND: (0,1)"]),
        ("AT%XCBAND=?", ["%XCBAND: (1,257)"]),
        ("AT%XCBAND=?", ["%XCBAND: (3-1)"]),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


def test_a_mode_with_more_flags_than_are_known_may_have_a_radio():
    with pytest.raises(ParseError, match="parameter 6 is one too many"):
        value_of("AT%XSYSTEMMODE?", "%XSYSTEMMODE: 0,0,0,0,0,1")


def test_a_mode_is_set_with_a_flag_for_satellites_only_where_it_is_named():
    assert SetSystemMode(1, 0, 1).encode() == "AT%XSYSTEMMODE=1,0,1,0"
    assert SetSystemMode(0, 0, 0, ntn_nb_iot=1).encode() == "AT%XSYSTEMMODE=0,0,0,0,1"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%LOCATION: 2000", {"accuracy_m": 2000, "next_accuracy_m": None}),
        ("%LOCATION: 0,200,60", {"accuracy_m": 0, "next_accuracy_m": 200, "next_in_s": 60}),
        ("%LOCATION: 0", {"accuracy_m": 0, "next_in_s": None}),
    ],
)
def test_a_modem_that_asks_for_its_place_says_how_well_it_must_know_it(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize("line", ["%LOCATION:", "%LOCATION: aa", '%LOCATION: 200,60,"bb"'])
def test_no_part_of_a_malformed_question_for_the_place_is_used(line):
    assert isinstance(notice_of(line), Malformed)
