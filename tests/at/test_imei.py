"""An IMEI whose check digit is wrong is asked for twice."""

from __future__ import annotations

import pytest

from at.driver.modem import Modem
from at.imei import read_imei
from at.protocol.errors import ParseError
from tests.support.modem.line_modem import LineModem, run_session

WHOLE, DAMAGED = "352656100441776", "352656100447776"


def told(*imeis: str) -> tuple[str, list[str]]:
    """Return the IMEI of a modem that tells these, one at a time, and what it was asked."""
    found, asked = [], []

    async def work(modem: Modem, far: LineModem) -> None:
        answers = [f'+CGSN: "{imei}"' for imei in imeis]
        far.body = lambda command: answers.pop(0) if command == "AT+CGSN=1" else ""
        try:
            found.append(await read_imei(modem))
        finally:
            asked.extend(far.received)

    run_session(work)
    return found[0], [one for one in asked if one == "AT+CGSN=1"]


def test_an_imei_whose_check_digit_is_right_is_asked_for_once() -> None:
    assert told(WHOLE) == (WHOLE, ["AT+CGSN=1"])


def test_an_imei_with_a_wrong_check_digit_is_taken_where_the_modem_tells_it_again() -> None:
    assert told(DAMAGED, DAMAGED) == (DAMAGED, ["AT+CGSN=1"] * 2)


def test_an_imei_that_came_damaged_is_refused() -> None:
    with pytest.raises(ParseError, match=f"as {DAMAGED}, then as {WHOLE}"):
        told(DAMAGED, WHOLE)
