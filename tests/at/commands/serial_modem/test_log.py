"""The Serial Modem's second UART."""

from __future__ import annotations

import pytest

from at.protocol.errors import ParseError
from tests.support.modem.answers import value_of


@pytest.mark.parametrize(
    ("command", "line", "value"),
    [("AT#XLOG?", "#XLOG: 2", {"mode": 2}), ("AT#XTRACE?", "#XTRACE: 0", {"mode": 0})],
)
def test_an_answer_becomes_its_fields(command, line, value):
    assert value_of(command, line) == value


@pytest.mark.parametrize(
    ("command", "line"), [("AT#XLOG?", "#XLOG: 3"), ("AT#XTRACE?", "#XTRACE: 2")]
)
def test_a_malformed_answer_is_refused(command, line):
    with pytest.raises(ParseError):
        value_of(command, line)
