"""The functional mode switches radios and SIM, and registration follows in its own time."""

from __future__ import annotations

import pytest
from virtual_modems import ask, notices_until, switched_on


def test_a_rejection_is_told_with_its_cause() -> None:
    kit = switched_on("AT+CNEC=24", "AT+CEREG=5", faults=("not-registered=3",))
    assert ask(kit, "AT+CFUN=1") == ["OK", "+CNEC_EMM: 15", "+CEREG: 3,,,,0,15"]


def test_a_registered_kit_that_moves_tells_its_new_cell() -> None:
    kit = switched_on()
    ask(kit, "AT+CEREG=2")
    first = ask(kit, "AT+CFUN=1")[-1]
    kit.advance(11 * 60.0)
    notices = kit.data_to_send().decode().split("\r\n")[:-1]
    assert notices
    assert all(line.startswith('+CEREG: 1,"09') for line in notices)
    assert first not in notices[:1]
    last = ask(kit, "AT+CEREG?")[0]
    assert last == notices[-1].replace("+CEREG: ", "+CEREG: 2,")


def test_registration_takes_the_time_of_a_recorded_modem() -> None:
    kit = switched_on("AT+CEREG=1", "AT+CSCON=1", "AT%XSIM=1", instant=False)
    kit.receive(b"AT+CFUN=1\r", now=0.0)
    assert notices_until(kit, 14.0) == [
        (0.03, "OK"),
        (0.3, "%XSIM: 1"),
        (1.2, "+CEREG: 2"),
        (3.4, "+CSCON: 1"),
        (3.9, "+CEREG: 1"),
        (13.9, "+CSCON: 0"),
    ]


def test_a_modem_that_is_switched_off_before_it_registers_does_not() -> None:
    kit = switched_on("AT+CEREG=1", instant=False)
    kit.receive(b"AT+CFUN=1\r", now=0.0)
    kit.advance(1.0)
    kit.receive(b"AT+CFUN=4\r", now=1.0)
    assert [line for _, line in notices_until(kit, 60.0)] == ["OK", "OK"]
    assert ask(kit, "AT+CFUN?")[0] == "+CFUN: 4"


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
