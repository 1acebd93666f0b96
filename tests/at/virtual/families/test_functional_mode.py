"""The functional mode switches radios and SIM; the error format gives errors their numbers."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, switched_on


@pytest.mark.parametrize("mode", ["3", "5", "45", "1,1", ""])
def test_a_mode_that_the_manual_does_not_have_is_refused(mode: str) -> None:
    assert ask(switched_on(), f"AT+CFUN={mode}") == ["ERROR"]


def test_the_list_of_modes_is_that_of_the_manual() -> None:
    assert ask(switched_on(), "AT+CFUN=?")[0] == "+CFUN: (0,1,4,20,21,30,31,40,41,44)"


@pytest.mark.parametrize(
    ("mode", "sim", "lte"),
    [(0, False, False), (4, False, False), (20, True, False), (21, True, True), (41, True, True)],
)
def test_a_mode_switches_lte_and_the_sim(mode: int, sim: bool, lte: bool) -> None:
    kit = switched_on("AT+CFUN=1", f"AT+CFUN={mode}")
    assert (kit.kit.session.sim_up, kit.kit.active) == (sim, lte)


def test_mode_0_ends_the_subscriptions_and_flight_mode_keeps_them() -> None:
    kit = switched_on("AT+CEREG=2", "AT+CFUN=1", "AT+CFUN=4")
    assert ask(kit, "AT+CEREG?")[0] == "+CEREG: 2,0"
    ask(kit, "AT+CFUN=0")
    assert ask(kit, "AT+CEREG?")[0] == "+CEREG: 0,0"


def test_numbers_of_errors_are_switched_on_and_texts_are_not() -> None:
    modem = switched_on("AT+CMEE=1")
    assert ask(modem, "AT+CMEE?") == ["+CMEE: 1", "OK"]
    assert ask(modem, "AT+CMEE=2") == ["ERROR"]
