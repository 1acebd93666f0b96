"""Why the network refused: the last failure, and the causes as they come."""

from __future__ import annotations

import pytest

from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('"EMM 15"', {"report": "EMM 15", "module": "EMM", "cause": 15}),
        ('"ESM 33"', {"module": "ESM", "cause": 33}),
        ('"UICC 0"', {"module": "UICC", "cause": 0}),
        ('"SMS 301"', {"module": "SMS", "cause": 301}),
        ("No cause information available", {"module": None, "cause": None}),
        ("0,0,5,16,normal call clearing", {"report": "0,0,5,16,normal call clearing"}),
        ('"0 Unknown"', {"report": "0 Unknown", "module": None}),
        ('"EMM "', {"report": "EMM ", "module": None}),
        ('"EMM 255"', {"module": "EMM", "cause": 255}),
        (f'"SMS {"1" * 5000}"', {"module": None, "cause": None}),
        ('"SM 15"', {"report": "SM 15", "module": None, "cause": None}),
    ],
)
def test_a_report_names_module_and_cause_where_it_has_them(text, part):
    assert_fields(value_of("AT+CEER", f"+CEER: {text}"), part)


@pytest.mark.parametrize("module", ["EMM", "ESM", "PDP", "UICC", "SMS", "OTHER"])
def test_the_modules_of_an_nrf91_are_known(module):
    assert_fields(value_of("AT+CEER", f'+CEER: "{module} 1"'), {"module": module, "cause": 1})


@pytest.mark.parametrize(
    "lines",
    [
        *([], ['+CEER: "EMM 15'], ['+CEER: EMM" 15'], ["+CEE: x"]),
        *(['+CEER: "EMM 256"'], ['+CEER: "ESM 256"']),
    ],
)
def test_a_malformed_report_is_refused_whole(lines):
    with pytest.raises(ParseError):
        value_of("AT+CEER", *lines)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("+CNEC_ESM: 50,0", {"cause": 50, "cid": 0}),
        ("+CNEC_ESM: 27,255", {"cause": 27, "cid": 255}),
        ("+CNEC_EMM: 15", {"cause": 15, "cid": None}),
        ("+CNEC_EMM: 22,0", {"cause": 22, "cid": 0}),
    ],
)
def test_a_cause_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line",
    [
        "+CNEC_EMM: ",
        "+CNEC_EMM: 256",
        "+CNEC_EMM: 15,0,1",
        "+CNEC_ESM: 33,",
        "+CNEC_ESM: 33,0,1",
        "+CNEC_ESM: 33,256",
    ],
)
def test_a_malformed_cause_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)
