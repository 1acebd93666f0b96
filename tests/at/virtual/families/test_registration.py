"""Registration follows the start of the modem in its own time."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, notices_until, switched_on


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


@pytest.mark.parametrize(
    ("command", "answer"), [("AT+CNEC=?", ["+CNEC: (0,8,16,24)", "OK"]), ("AT+CNEC=1", ["ERROR"])]
)
def test_errors_are_told_of_mobility_of_sessions_or_of_both(
    command: str, answer: list[str]
) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == answer
