"""System mode and band are set and shown as in the manual."""

from __future__ import annotations

import pytest
from virtual_modems import ask, switched_on

from at.commands.catalog import command_of


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("AT%XDATAPRFL?", "%XDATAPRFL: 2"),
        ("AT%XCBAND", "%XCBAND: 4"),
    ],
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    kit = switched_on("AT+CFUN=1")
    line, final = ask(kit, command)
    assert (line, final) == (answer, "OK")
    typed = command_of(command)
    if typed is not None:
        typed.parse([line])


@pytest.mark.parametrize("command", ["AT%XDATAPRFL=5", "AT%XDATAPRFL"])
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == ["ERROR"]


def test_the_system_mode_changes_only_while_the_radios_are_off() -> None:
    kit = switched_on("AT+CFUN=1")
    assert ask(kit, "AT%XSYSTEMMODE=0,1,0,0") == ["ERROR"]
    ask(kit, "AT+CFUN=4")
    assert ask(kit, "AT%XSYSTEMMODE=0,0,0,0") == ["ERROR"]
    assert ask(kit, "AT%XSYSTEMMODE=0,1,0,0") == ["OK"]
    ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+COPS?")[0] == '+COPS: 0,2,"00101",9'  # NB-IoT


def test_a_factory_reset_erases_credentials_only_with_0() -> None:
    kit = switched_on('AT%CMNG=0,7,0,"test"', "AT%XFACTORYRESET=1")
    assert "7,0" in kit.kit.saved.credentials
    ask(kit, "AT%XFACTORYRESET=0")
    assert not kit.kit.saved.credentials


def test_the_data_profile_survives_a_restart() -> None:
    kit = switched_on("AT%XDATAPRFL=4")
    kit.restart()
    kit.advance(kit.kit.now)
    kit.data_to_send()  # of the boot
    assert ask(kit, "AT%XDATAPRFL?")[0] == "%XDATAPRFL: 4"
