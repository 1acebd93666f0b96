"""Supply, temperature and events of the modem."""

from __future__ import annotations

import pytest
from answers import assert_fields, notice_of, notice_value, value_of

from at.protocol.notices import Malformed


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT%XVBAT", ["%XVBAT: 5054"], {"vbat_mv": 5054}),
        ("AT%XTEMP?", ["%XTEMP: -24"], {"temperature_c": -24}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%MDMEV: PRACH CE-LEVEL 0", {"text": "PRACH CE-LEVEL 0"}),
    ],
)
def test_a_notice_becomes_its_fields(line, part):
    assert_fields(notice_value(line), part)


@pytest.mark.parametrize(
    "line",
    [
        "%MDMEV:",
    ],
)
def test_a_malformed_notice_is_refused_whole(line):
    assert isinstance(notice_of(line), Malformed)
