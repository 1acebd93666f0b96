"""Signal quality: indices and their units; a line that was cut is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of

MONITOR = (
    '%XMONITOR: 1,"EDAV","EDAV","26295","00B7",7,4,"00011B07",7,2300,63,39,"",'
    '"11100000","11100000","01001001"'
)

NTN_MONITOR = (
    '%XMONITOR: 5,"","","90198","0001",14,256,"0018A301",113,229251,4,20,"",'
    '"11100000","11100000","00111110",0,12,-3,7'
)


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20,80"], {"rsrq_db": -10.0, "rsrp_dbm": -61}),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,255,255"], {"rsrq_db": None, "rsrp_dbm": None}),
        ("AT+CSQ", ["+CSQ: 20,99"], {"rssi": 20, "rssi_dbm": -73}),
        (
            "AT%XMONITOR",
            ['%XMONITOR: 5,"","","00102","0901",7,20,"02024720",428,6300,255,255,"","","",""'],
            {"rsrp": 255, "rsrp_dbm": None, "snr": 255, "snr_db": None},
        ),
        (
            "AT%CONEVAL",
            ['%CONEVAL: 0,1,5,255,255,127,"011B0780","00101",7,1575,3,1,1,23,16,32,130'],
            {"rsrp_dbm": None, "rsrq_db": None, "snr": 127, "snr_db": None},
        ),
        ("AT%CONEVAL", ["%CONEVAL: 1"], {"result": 1, "rsrp": None}),
        ("AT%XMONITOR", ["%XMONITOR: 3"], {"reg_status": 3, "plmn": None}),
        ("AT%XMONITOR", ["%XMONITOR: 2"], {"reg_status": 2, "plmn": None}),
        (
            "AT%XMONITOR",
            [NTN_MONITOR],
            {"act": 14, "band": 256, "earfcn": 229251, "further": [0, 12, -3, 7]},
        ),
        (
            "AT%XMONITOR",
            ['%XMONITOR: 5,,,"90198","0001",14,255,"00000002",10,262143,30,25,,,,,1,2,3,4'],
            {"earfcn": 262143, "periodic_tau": None, "further": [1, 2, 3, 4]},
        ),
        (
            "AT%CONEVAL",
            ['%CONEVAL: 0,1,9,4,2,14,"0018A301","90198",113,229251,256,255,255,23,16,32,130'],
            {"energy_estimate": 9, "tau_triggered": 255, "ce_level": 255},
        ),
        (
            "AT%CONEVAL",
            ['%CONEVAL: 0,1,5,4,2,14,"0018A301","90198",113,229251,256,1,1,23,16,32,130'],
            {"band": 256, "earfcn": 229251},
        ),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20"]),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20,98"]),
        ("AT+CESQ", ["+CESQ: 99,99,255,255,20,80,"[:-1] + ",7"]),
        ("AT+CESQ", []),
        ("AT%XMONITOR", ['%XMONITOR: 1,"a","b","00101","00B7",7,4,"00011B07"']),
        ("AT%XMONITOR", ["%XMONITOR: 1"]),
        ("AT%CONEVAL", ["%CONEVAL: 0"]),
        ("AT%XMONITOR", [MONITOR + ",1,2,3"]),
        ("AT%XMONITOR", [MONITOR + ",1,2,3,"]),
        ("AT%XMONITOR", [MONITOR + ',1,2,3,"4"']),
        ("AT%XMONITOR", [MONITOR.replace(",4,", ",257,")]),
        ("AT%XMONITOR", [MONITOR.replace("2300", "262144")]),
        ("AT%XMONITOR", [MONITOR.replace('"00B7"', '"000B7"')]),
        ("AT%XMONITOR", [MONITOR.replace('"00011B07"', '"000011B07"')]),
        ("AT%XMONITOR", [MONITOR.replace(',"",', ',"010",')]),
        ("AT%XMONITOR", [MONITOR.replace('"01001001"', '"001001001"')]),
        (
            "AT%CONEVAL",
            ['%CONEVAL: 0,1,5,8,2,14,"011B0780\u201d,"26295",7,1575,3,1,1,23,16,32,130'],
        ),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("line", "part"), [("%CESQ: 54,2,16,2", {"rsrp": 54, "rsrp_dbm": -87, "rsrq_db": -12.0})]
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize("line", ["%CESQ: 54,2,16", "%CESQ: 98,2,16,2"])
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


COUNTED = {
    "AT%XMONITOR": MONITOR,
    "AT%CONEVAL": '%CONEVAL: 0,1,5,8,2,14,"011B0780","26295",7,1575,3,1,1,23,16,32,130',
    "AT+CESQ": "+CESQ: 99,99,255,255,20,80",
}


@given(st.sampled_from(sorted(COUNTED)), st.data())
def test_no_line_that_was_cut_within_its_fields_gives_half_a_record(command, data):
    line = COUNTED[command]
    whole = value_of(command, line)
    cut = line[: data.draw(st.integers(0, len(line) - 1))]
    try:
        found = value_of(command, cut)
    except ParseError:
        return
    # What can still be read must be a shorter, whole form of the grammar.
    if command == "AT%XMONITOR":
        assert (
            found["plmn"] is None
            or {**whole, "periodic_tau": None, "periodic_tau_s": None} == found
        )
    elif command == "AT%CONEVAL":
        assert found["cell_id"] is None or found["dl_pathloss"] in {1, 13}
    else:
        assert found["rsrp"] == 8
