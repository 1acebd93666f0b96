"""The Serial Modem's second UART, and the speed of the first."""

from __future__ import annotations

import pytest
from answers import value_of

from at.protocol.errors import ParseError


@pytest.mark.parametrize(
    ("command", "line", "value"),
    [
        ("AT#XLOG?", "#XLOG: 2", {"mode": 2}),
        ("AT#XTRACE?", "#XTRACE: 0", {"mode": 0}),
        ("AT+IPR?", "+IPR: 1000000", {"rate": 1000000}),
        (
            "AT+IPR=?",
            "+IPR: (),(115200,230400,460800,921600,1000000)",
            {"autodetected": [], "rates": [115200, 230400, 460800, 921600, 1000000]},
        ),
        ("AT+IPR=?", "+IPR: (0,300)", {"autodetected": [0, 300], "rates": []}),
    ],
)
def test_an_answer_becomes_its_fields(command, line, value):
    assert value_of(command, line) == value


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("AT#XLOG?", "#XLOG: 3"),
        ("AT#XTRACE?", "#XTRACE: 2"),
        ("AT+IPR?", "+IPR: -1"),
        ("AT+IPR=?", "+IPR: 115200"),
        ("AT+IPR=?", "+IPR: (),(115200,x)"),
    ],
)
def test_a_malformed_answer_is_refused(command, line):
    with pytest.raises(ParseError):
        value_of(command, line)
