"""The speed of the serial port, and the longest command that goes over it."""

from __future__ import annotations

import pytest

from at.driver.modem import Modem
from at.protocol.dialect import Dialect
from at.protocol.errors import ParseError, UnsafeArgument
from at.virtual.transport import VirtualTransport
from tests.support.modem.answers import value_of


@pytest.mark.parametrize(
    ("command", "line", "value"),
    [
        ("AT+IPR?", "+IPR: 1000000", {"rate": 1000000}),
        (
            "AT+IPR=?",
            "+IPR: (),(115200,230400,460800,921600,1000000)",
            {"autodetected": [], "rates": [115200, 230400, 460800, 921600, 1000000]},
        ),
        ("AT+IPR=?", "+IPR: (0,300)", {"autodetected": [0, 300], "rates": []}),
    ],
)
def test_an_answer_becomes_its_rates(command: str, line: str, value: object) -> None:
    assert value_of(command, line) == value


@pytest.mark.parametrize(
    ("command", "line"),
    [("AT+IPR?", "+IPR: -1"), ("AT+IPR=?", "+IPR: 115200"), ("AT+IPR=?", "+IPR: (),(115200,x)")],
)
def test_a_malformed_answer_is_refused(command: str, line: str) -> None:
    with pytest.raises(ParseError):
        value_of(command, line)


async def test_a_command_of_8190_bytes_with_its_end_is_sent_and_one_more_is_not() -> None:
    transport = VirtualTransport(
        dialect="serial-modem", firmware="serial-modem-2.0.0", instant=True
    )
    modem = Modem(transport)
    await modem.open()
    try:
        assert modem.dialect is Dialect.SERIAL_MODEM
        start = 'AT#XNRFCLOUDOBSFORWARD="'
        longest = start + "A" * (8189 - len(start) - 1) + '"'
        assert not (await modem.execute(longest)).ok  # it came: without a session it is refused
        with pytest.raises(UnsafeArgument, match="8189"):
            await modem.execute(longest + " ")
    finally:
        await modem.close()
