"""Packet data contexts: answers of both forms, and their events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.contexts import _EVENTS
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of

CONTEXT = {"cid": 0, "type": "", "apn": "", "address": "", "ipv4_alloc": 0}


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CGACT?", ["+CGACT: 0,1", "+CGACT: 1,0"], {}),
        (
            "AT+CGAUTH?",
            ['+CGAUTH: 0,1,"me","word"', "+CGAUTH: 1,0"],
            {
                "contexts": [
                    {"cid": 0, "protocol": 1, "user": "me"},
                    {"cid": 1, "protocol": 0, "user": None},
                ]
            },
        ),
        ("AT+CGDCONT?", ['+CGDCONT: 0,"","","",0,0'], {"contexts": [CONTEXT]}),
        (
            "AT+CGDCONT?",
            ['+CGDCONT: 1,"IP","a.b",,0,0', '+CGDCONT: 2,"IPV6","c"'],
            {
                "contexts": [
                    {**CONTEXT, "cid": 1, "type": "IP", "apn": "a.b", "address": None},
                    {"cid": 2, "type": "IPV6", "apn": "c", "address": None, "ipv4_alloc": None},
                ]
            },
        ),
        (
            "AT+CGPADDR",
            [
                '+CGPADDR: 0,"10.0.0.1 fe80::1"',
                "+CGPADDR: 1,fe80::2",
                '+CGPADDR: 2,"10.0.0.2",""',
                "+CGPADDR: 3",
                "+CGPADDR: 4,::ffff:10.0.0.1",
            ],
            {
                "contexts": [
                    {"cid": 0, "ipv4": "10.0.0.1", "ipv6": "fe80::1"},
                    {"cid": 1, "ipv4": None, "ipv6": "fe80::2"},
                    {"cid": 2, "ipv4": "10.0.0.2", "ipv6": None},
                    {"cid": 3, "ipv4": None, "ipv6": None},
                    {"cid": 4, "ipv4": None, "ipv6": "::ffff:10.0.0.1"},
                ]
            },
        ),
        ("AT+CGCONTRDP", ['+CGCONTRDP: 0,0,"a"', '+CGCONTRDP: 1,255,"b"'], {}),
        ("AT+CGEREP?", ["+CGEREP: 2"], {"mode": 2, "bfr": None}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+CGDCONT?", ["+CGDCONT: x"]),
        ("AT+CGDCONT?", ['+CGDCONT: 0,"IP"']),
        ("AT+CGDCONT?", ['+CGDCONT: 256,"IP","a"']),
        ("AT+CGPADDR", ['+CGPADDR: 0,"10.0.0.1 fe80::1","fe80::2"']),
        ("AT+CGPADDR", ['+CGPADDR: 0,"nowhere"']),
        ("AT+CGACT?", ["+CGACT: 0,1,1"]),
        ("AT+CGPADDR", ['+CGPADDR: 0,"1"']),
        ("AT+CGPADDR", [f'+CGPADDR: 0,"{"1" * 65}"']),
        ("AT+CGCONTRDP", ['+CGCONTRDP: 0,256,"a"']),
        ("AT+CGCONTRDP", ['+CGCONTRDP: 0,-1,"a"']),
        ("AT+CGCONTRDP", ['+CGCONTRDP: 0,5,"a","here"']),
        ("AT+CGCONTRDP", ['+CGCONTRDP: 0,5,"a","","","dns.example"']),
        ("AT+CGAUTH?", ["+CGAUTH: 0"]),
        ("AT+CGAUTH?", ['+CGAUTH: 0,4,"me"']),
        ("AT+CGAUTH?", ['+CGAUTH: 0,1,"me","word",1']),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("+CGEV: ME PDN ACT 0,1", {"event": "ME PDN ACT", "cid": 0}),
        ("+CGEV: ME PDN ACT 255,3,4,1", {"event": "ME PDN ACT", "cid": 255}),
        ("+CGEV: RESTR 1,0", {"event": "RESTR", "cid": None, "parameters": ["1", "0"]}),
        ("+CGEV: ME OVERHEATED", {"event": "ME OVERHEATED", "cid": None, "parameters": []}),
        ("+CGEV: ME PDN RESUMED 1", {"event": "ME PDN RESUMED", "cid": 1}),
        ("+CGEV: NW CLASS CG", {"event": "NW CLASS", "parameters": ["CG"]}),
        ('+CGEV: NW REACT "PPP",""', {"event": "NW REACT", "cid": None}),
        ("+CGEV: EXCE STATUS 0", {"event": "EXCE STATUS", "cid": None, "parameters": ["0"]}),
        ("+CGEV: NW DETACH", {"event": "NW DETACH", "cid": None}),
        ("+CGEV: NW ACT 3, 2, 1", {"event": "NW ACT", "cid": 2, "parameters": ["3", "2", "1"]}),
        ("+CGEV: ME ACT 0,5,1,0", {"event": "ME ACT", "cid": 5}),
        ("+CGEV: NW DEACT 0, 5, 1", {"event": "NW DEACT", "cid": 5}),
        ("+CGEV: ME DEACT 3,2,0", {"event": "ME DEACT", "cid": 2}),
        ('+CGEV: NW DEACT "IP","10.0.0.1",4', {"event": "NW DEACT", "cid": 4}),
        ("+CGEV: ME DEACT IP, 10.0.0.1, 4", {"event": "ME DEACT", "cid": 4}),
        ('+CGEV: NW DEACT "IP","10.0.0.1"', {"event": "NW DEACT", "cid": None}),
        ('+CGEV: NW REACT "IP", "10.0.0.1", 4', {"event": "NW REACT", "cid": 4}),
        ('+CGEV: REJECT "IP", "10.0.0.1"', {"event": "REJECT", "cid": None}),
        ("+CGEV: NW PDN ACT 1", {"event": "NW PDN ACT", "cid": 1}),
        ("+CGEV: NW PDN DEACT 1", {"event": "NW PDN DEACT", "cid": 1}),
        ("+CGEV: ME PDN DEACT 1", {"event": "ME PDN DEACT", "cid": 1}),
        ("+CGEV: NW MODIFY 3, 2, 1", {"event": "NW MODIFY", "cid": 3}),
        ("+CGEV: IPV6 FAIL 2", {"event": "IPV6 FAIL", "cid": 2}),
        ("+CGEV: NW CLASS B", {"event": "NW CLASS", "cid": None, "parameters": ["B"]}),
        ("+CGEV: APNRATECTRL STAT 2,1", {"event": "APNRATECTRL STAT", "cid": 2}),
        ("+CGEV: APNRATECTRL STAT 0,1,60", {"event": "APNRATECTRL STAT", "cid": 0}),
        ("+CGEV: ME DETACH 1", {"event": "ME DETACH", "cid": None, "parameters": ["1"]}),
        ("+CGEV: ME PDN SUSPENDED 3", {"event": "ME PDN SUSPENDED", "cid": 3}),
        ("+CGEV: ME BATTERY LOW", {"event": "ME BATTERY LOW", "cid": None}),
        ("+CGEV: XY NEW 3", {"event": "XY NEW", "cid": 3}),
        ("+CGEV: XY NEW", {"event": "XY NEW", "cid": None}),
        ("+CGEV: XY NEW a,3", {"event": "XY NEW", "cid": None}),
        ("+CGEV: XY NEW 3,2", {"event": "XY NEW", "cid": 3, "parameters": ["3", "2"]}),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line",
    [
        "+CGEV: NW ACT 3, 2",
        "+CGEV: NW ACT 3,256,1",
        "+CGEV: NW ACT 3,2,1,0,1",
        "+CGEV: NW MODIFY 3,2,1,0,1",
        "+CGEV: NW CLASS B,C",
        '+CGEV: NW DEACT "IP","10.0.0.1",4,1',
        '+CGEV: NW DEACT "IP","10.0.0.1",x',
        "+CGEV: ME PDN ACT 256",
        "+CGEV: ME PDN ACT 1,2,3,4,5",
        "+CGEV: NW DETACH 1,2",
        "+CGEV: IPV6 0,1",
        "+CGEV: NW REACT IP",
        "+CGEV: ME OVERHEATED 1",
        "+CGEV: RESTR 1,2,3",
        "+CGEV: NW DEACT \"IP\",'x',1",
        "+CGEV: ME ACT",
        "+CGEV: NW DEACT 3,,1",
        "+CGEV: ME ACT 3,x,1",
        "+CGEV: ME PDN ACT",
        "+CGEV: ME PDN ACT 0,",
        "+CGEV: NW PDN DEACT ",
        "+CGEV: NW MODIFY",
        "+CGEV: IPV6",
        "+CGEV: IPV6 FAIL",
        "+CGEV: APNRATECTRL STAT",
        "+CGEV: NW PDN",
        "+CGEV: ME PDN AC",
        "+CGEV: PDN ACT 0",
        "+CGEV: NW CLASS",
        "+CGEV: NW MODIFY 3",
        "+CGEV: EXCE STATUS",
        '+CGEV: REJECT "IP"',
        '+CGEV: NW DEACT "IP","10.0',
        "+CGEV: ME DEACT IP",
        "+CGEV: ME BATTERY",
        "+CGEV: ME PDN SUSPENDED",
    ],
)
def test_an_event_that_lacks_its_context_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)


@given(
    event=st.sampled_from(sorted(_EVENTS)),
    numbers=st.lists(st.integers(0, 9), max_size=4),
    kept=st.integers(0, 40),
)
def test_an_event_that_is_cut_anywhere_is_never_another(event, numbers, kept):
    whole = f"{event} {','.join(map(str, numbers))}".strip()
    for cut in (whole[:kept], event[kept:]):
        notice = notice_of(f"+CGEV: {cut}")
        assert isinstance(notice, Malformed) or notice.value.event == event


@pytest.mark.parametrize(
    ("line", "mask", "gateway"),
    [
        ('4,5,"a.b","2.3.4.5.255.255.255.255","2.3.4.6","1.1.1.1"', "255.255.255.255", "2.3.4.6"),
        ('4,5,"a.b","2.3.4.5","255.255.255.0","2.3.4.6"', "255.255.255.0", "2.3.4.6"),
        ("1,5,NAME,10.1.1.1,,10.2.2.2,10.3.3.3", None, None),
        (f'0,5,"a","{".".join(["254"] * 16 + ["255"] * 16)}"', ".".join(["255"] * 16), None),
        ('4,5,""', None, None),
    ],
)
def test_context_parameters_of_both_forms_are_read(line, mask, gateway):
    (context,) = value_of("AT+CGCONTRDP", f"+CGCONTRDP: {line}")["contexts"]
    assert (context["subnet_mask"], context["gateway"]) == (mask, gateway)


@pytest.mark.parametrize(
    ("tail", "mtu"),
    [
        (",,,,,1028", 1028),
        (',"","",0,0,"1500"', None),
        (',"","","",0', None),
        (",,,,,", None),
        ("", None),
    ],
)
def test_the_size_of_a_packet_stands_behind_the_name_servers(tail, mtu):
    line = f'+CGCONTRDP: 0,,"internet","","","10.0.0.1","10.0.0.2"{tail}'
    (context,) = value_of("AT+CGCONTRDP=0", line)["contexts"]
    assert context["dns_secondary"] == "10.0.0.2"
    assert context["ipv4_mtu"] == mtu
