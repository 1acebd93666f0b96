"""Identity: versions and serial numbers."""

from __future__ import annotations

import pytest

from at.protocol.errors import ParseError
from tests.support.modem.answers import assert_fields, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CGMR", ["mfw_nrf9160_1.3.7"], {"revision": "mfw_nrf9160_1.3.7"}),
        ("AT%SHORTSWVER", ["%SHORTSWVER: nrf9160_1.3.2"], {"version": "nrf9160_1.3.2"}),
        ("AT%HWVERSION", ["%HWVERSION: nRF9161 LACA A0A"], {"hw_version": "nRF9161 LACA A0A"}),
        ("AT+CGSN", ["352656100000009"], {"imei": "352656100000009"}),
        ("AT+CGSN=1", ['+CGSN: "352656100000009"'], {"imei": "352656100000009"}),
        ("AT+CGSN=3", ['+CGSN: "25"'], {"svn": "25"}),
        ("AT+CGSN=?", ["+CGSN: (0-3)"], {"snts": [0, 1, 2, 3]}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT+CGMR", ["+CSCON: 1"]),
        ("AT+CGSN", ["+CSCON: 1"]),
        ("AT+CGSN=1", ['+CGSN: "35265610000000"']),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)
