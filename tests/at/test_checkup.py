"""The check-up of a modem: one line a question, whatever it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from at.checkup import Check, check_modem, firmware_check
from at.driver.modem import Modem
from at.firmware_gate import firmware_verdict
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

if TYPE_CHECKING:
    from collections.abc import Callable

HEALTHY = {
    "AT+CGMM": "nRF9161-LACA",
    "AT+CGSN=1": '+CGSN: "352656100000009"',
    "AT%DEVICEUUID": "%DEVICEUUID: 50363154-3930-44d9-80d9-0b2d1f3f2b1f",
    "AT+CFUN?": "+CFUN: 1",
    "AT+CPIN?": "+CPIN: READY",
    "AT+CEREG?": "+CEREG: 0,1",
    "AT+CCLK?": '+CCLK: "26/02/10,23:53:12+36"',
}


def checked(answers: dict[str, str] | Callable[[str], str | None]) -> dict[str, Check]:
    async def session() -> list[Check]:
        far = LineModem(answers.get if isinstance(answers, dict) else answers)
        far.reads = {"AT+CMEE?": "+CMEE: 1"}
        modem = Modem(far.transport)
        await modem.open()
        try:
            return await check_modem(modem)
        finally:
            await modem.close()

    return {check.name: check for check in virtual_time.run(session())}


def test_a_registered_modem_tells_all_that_is_asked() -> None:
    found = checked(HEALTHY)
    assert {name: check.shown for name, check in found.items()} == {
        "model": "nRF9161-LACA",
        "imei": "352656100000009",
        "device_uuid": "50363154-3930-44d9-80d9-0b2d1f3f2b1f",
        "functional_mode": "1 (on)",
        "sim": "READY",
        "registration": "registered, home network",
        "time": "26/02/10,23:53:12+36",
    }
    assert found["registration"].ok is True


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        (0, "0 (off)"),
        (4, "4 (flight mode)"),
        (21, "21 (LTE on)"),
        (44, "44 (flight mode)"),
        (45, "45 (flight mode, its registration kept)"),
        (7, "7"),
    ],
)
def test_the_functional_mode_has_a_word_where_there_is_one(mode: int, shown: str) -> None:
    check = checked({**HEALTHY, "AT+CFUN?": f"+CFUN: {mode}"})["functional_mode"]
    assert (check.value, check.shown) == (mode, shown)


def test_an_imei_that_came_damaged_is_none() -> None:
    answers = iter(['+CGSN: "352656100447776"', '+CGSN: "352656100441776"'])

    def answer(command: str) -> str | None:
        return next(answers) if command == "AT+CGSN=1" else HEALTHY.get(command)

    imei = checked(answer)["imei"]
    assert (imei.value, imei.ok) == (None, False)
    assert "352656100447776, then as 352656100441776" in imei.shown


def test_what_is_refused_is_a_line_with_a_hint_and_no_value() -> None:
    found = checked({name: line for name, line in HEALTHY.items() if name != "AT+CPIN?"})
    sim = found["sim"]
    assert (sim.value, sim.ok) == (None, None)
    assert "not told" in sim.shown
    assert "`cellagent modem on`" in sim.hint
    assert found["imei"].value == "352656100000009"


def test_a_refusal_in_words_keeps_its_own_way_out() -> None:
    sim = checked({**HEALTHY, "AT+CPIN?": "+CME ERROR: SIM not inserted"})["sim"]
    assert "SIM not inserted" in sim.shown
    assert "insert a SIM" in sim.hint


def test_what_breaks_its_grammar_is_not_understood() -> None:
    check = checked({**HEALTHY, "AT+CEREG?": "+CEREG: 0,77"})["registration"]
    assert (check.value, check.ok) == (None, False)
    assert check.shown.startswith("not understood")


@pytest.mark.parametrize(
    ("text", "ok"), [("mfw_nrf91x1_2.0.4", True), ("mfw_nrf9160_1.2.3", False)]
)
def test_the_firmware_line_says_what_the_gate_says(text: str, ok: bool) -> None:
    check = firmware_check(firmware_verdict(text))
    assert (check.value, check.ok) == (text, ok)
    assert check.shown.startswith(text)
    assert bool(check.hint) is not ok


def test_the_firmware_line_explains_an_unusual_permission() -> None:
    verdict = firmware_verdict("mfw_nrf9151-ntn_1.0.0-1.alpha")
    assert verdict.note in firmware_check(verdict).shown
