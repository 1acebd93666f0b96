"""Registration lines of many vendors. Written by hand after the forms that each is known for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.registration import ReadRegistration, read_line
from at.protocol.errors import ParseError
from at.protocol.values import name_before_colon
from tests.support.modem.answers import assert_fields, notice_value

HEX4 = st.text("0123456789ABCDEF", min_size=4, max_size=4)
HEX8 = st.text("0123456789ABCDEF", min_size=8, max_size=8)
BITS = st.text("01", min_size=8, max_size=8)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("+CREG: 1,3", {"n": 1, "stat": 3}),
        ("+CREG: 3", {"n": None, "stat": 3}),
        ("+CREG: 0,1,94CD,00D40173", {"n": 0, "stat": 1, "lac": "94CD", "ci": "00D40173"}),
        ("+CREG: 1,94CD,00D40156", {"n": None, "stat": 1, "lac": "94CD", "ci": "00D40156"}),
        ('+CREG: 2,1,"DE00","01CEADFF"', {"n": 2, "lac": "DE00", "ci": "01CEADFF"}),
        ("+CREG: 2,0,00,0", {"n": 2, "stat": 0, "lac": "00", "ci": "0"}),
        ("+CREG: 2,9BE3,3BAF", {"n": None, "stat": 2, "lac": "9BE3"}),
        ("+CREG: 2,,", {"n": None, "stat": 2, "lac": None}),
        ('+CREG:002,001,"19d8","fffe"', {"n": 2, "stat": 1, "lac": "19d8", "ci": "fffe"}),
        ("+CREG: 2,1,000C,2817, C, C2817", {"lac": "000C", "ci": "2817", "act": None}),
        ("+CREG: 2,1,  0 5, 2716", {"n": 2, "stat": 1, "ci": "2716"}),
        ("+CGREG: 2,1, 91ED, 1A9CEC", {"n": 2, "lac": "91ED", "ci": "1A9CEC"}),
        ('+CGREG: 1,"1433","00000143",3,"00"', {"n": None, "act": 3, "rac": "00"}),
        ("+CEREG: 2,1, 1E00, 79D904 ,7", {"n": 2, "tac": "1E00", "ci": "79D904", "act": 7}),
        ("+CEREG: 1, 2, 0002, 00000200, 7", {"n": 1, "stat": 2, "tac": "0002"}),
        ("+CEREG: 2, 0002, 00000200, 7", {"n": None, "stat": 2, "tac": "0002", "act": 7}),
        ("+CEREG: 2,1, 1E00, 21 ,79D904 ,7", {"n": 2, "rac": "21", "ci": "79D904", "act": 7}),
        ("+CEREG: 1, 1E00, 21 ,79D904 ,7", {"n": None, "rac": "21", "ci": "79D904"}),
        ('+CEREG: 2,1,"1E00","79D904",9,"00"', {"act": 9, "rac": "00"}),
        ("+CEREG:3,1,6271,0CBDC51,7,00,0,0", {"act": 7, "rac": "00", "cause_type": 0}),
        ("+C5GREG: 2,1,1E00,79D904,11,6,ABCDEF", {"act": 11, "allowed_nssai": "ABCDEF"}),
        ("+CEREG: 0,90", {"n": 0, "stat": 90}),
        ("+CEREG: 1,1,", {"n": 1, "stat": 1, "tac": None}),
        ("+CEREG: 3,,,,,0,15", {"n": None, "rac": None, "cause_type": 0, "reject_cause": 15}),
        ('+CEREG: 3,3,"002F","0012BEEF",7,0,13', {"cause_type": 0, "reject_cause": 13}),
        (
            '+CEREG: 5,1,"00B7","00011B07",7,,,"00000010","00101000"',
            {"n": 5, "active_time_s": 4, "periodic_tau_ext_s": 28800, "reject_cause": None},
        ),
        ('+CEREG: 1,,,,,,"11100000","11100000"', {"n": None, "tac": None, "active_time_s": None}),
    ],
)
def test_a_line_is_read_whoever_wrote_it(line, fields):
    found = read_line(line, name_before_colon(line))
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    "line",
    [
        "+CEREG:",
        "+CEREG: ",
        "+CEREG: x",
        "+CEREG: 42",
        "+CEREG: 9,1",
        '+CEREG: 2,1,"002F"',
        '+CEREG: 2,1,"002G","0012BEEF",7',
        '+CEREG: 2,1,"002F1","0012BEEF",7',
        '+CEREG: 2,1,"002F","0012BEEF0",7',
        '+CEREG: 2,1,"002F","0012BEEF",7,0',
        '+CEREG: 2,1,"002F",',
        '+CEREG: 3,3,"002F","0012BEEF",7,0,',
        '+CEREG: 5,1,"00B7","00011B07",7,,,"0000001","00101000"',
        '+CEREG: 5,1,"00B7","00011B07",7,,,"00000010"',
        '+CEREG: 5,1,"00B7","00011B07',
        "+CEREG 1,1",
        "+CGREG: 1,1",
    ],
)
def test_a_malformed_line_is_refused_whole(line):
    with pytest.raises(ParseError):
        read_line(line, "+CEREG")


@given(
    n=st.integers(0, 5), stat=st.sampled_from([0, 1, 2, 3, 4, 5, 90]), tac=HEX4, ci=HEX8, act=BITS
)
def test_what_is_written_by_the_grammar_is_read_back(n, stat, tac, ci, act):
    tail = f'{stat},"{tac}","{ci}",7,,,"{act}","{act}"'
    reply, notice = (read_line(f"+CEREG: {head}{tail}", "+CEREG") for head in (f"{n},", ""))
    assert (reply.n, notice.n) == (n, None)
    for found in (reply, notice):
        assert (found.stat, found.tac, found.ci, found.active_time) == (stat, tac, ci, act)


def test_a_notice_between_the_command_and_its_reply_is_not_the_reply():
    command = ReadRegistration()
    assert not command.owns("+CEREG: 1")
    assert not command.owns('+CEREG: 1,"00B7","00011B07",7')
    assert command.owns("+CEREG: 1,1")
    assert command.owns("+CEREG: 5,1,,,7")


def test_a_cell_id_that_means_none_is_no_registration():
    assert not read_line('+CEREG: 1,"FFFE","FFFFFFFF",7', "+CEREG").registered
    assert read_line('+CEREG: 1,"FFFE","0FFFFFFF",7', "+CEREG").registered
    assert read_line('+CEREG: 5,"00B7","00011B07",7', "+CEREG").registered


@pytest.mark.parametrize(
    ("line", "part"),
    [('+C5GREG: 1,"00AB12","00000001C0FFEE01",11', {"ci": "00000001C0FFEE01", "act": 11})],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)
