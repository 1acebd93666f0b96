"""Operators and connection are answered as in the manual."""

from __future__ import annotations

import pytest

from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.modem.virtual_modems import ask, assert_answered, switched_on


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("AT+CEMODE?", "+CEMODE: 0"),
        ("AT+CEMODE=?", "+CEMODE: (0,2)"),
        ("AT+CGATT?", "+CGATT: 1"),
        ("AT%COPS=?", '%COPS: (2,"","","00101",7)'),
    ],
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    assert_answered(command, answer)


@pytest.mark.parametrize(
    "command", ['AT+COPS=1,2,"0010\xb2"', "AT+CEMODE=1", "AT+CEMODE=3", "AT+CEMODE", "AT+CGATT=0"]
)
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == ["ERROR"]


def test_the_mode_of_operation_survives_a_restart() -> None:
    kit = switched_on("AT+CEMODE=2")
    kit.restart()
    kit.advance(kit.kit.now)
    kit.data_to_send()  # of the boot
    assert ask(kit, "AT+CEMODE?")[0] == "+CEMODE: 2"


def test_a_scan_waits_for_the_connection_to_end() -> None:
    kit = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    for line in (b"AT+CMEE=1\r", b"AT+CFUN=1\r"):
        kit.receive(line, now=kit.kit.now)
    kit.advance(5.0)
    assert kit.kit.session.connected
    kit.data_to_send()
    assert ask(kit, "AT+COPS=?") == ["+CME ERROR: 516"]
