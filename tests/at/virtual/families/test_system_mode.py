"""System mode and band are set and shown as in the manual."""

from __future__ import annotations

import pytest

from tests.support.modem.answers import value_of
from tests.support.modem.virtual_modems import ask, assert_answered, switched_on


@pytest.mark.parametrize(
    ("command", "answer"), [("AT%XDATAPRFL?", "%XDATAPRFL: 2"), ("AT%XCBAND", "%XCBAND: 4")]
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    assert_answered(command, answer)


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


def test_firmware_for_satellites_registers_by_one_and_says_so_in_its_own_forms() -> None:
    kit = switched_on(model="nrf9151", firmware="mfw_nrf9151-ntn_1.0.1")
    assert ask(kit, "AT%XSYSTEMMODE?")[0] == "%XSYSTEMMODE: 1,0,1,0,0"
    assert ask(kit, "AT%XSYSTEMMODE=?")[0] == "%XSYSTEMMODE: (0,1),(0,1),(0,1),(0-4),(0,1)"
    assert ask(kit, "AT%XCBAND=?")[0].endswith(",66,23,255,256)")
    assert ask(kit, "AT%XSYSTEMMODE=0,0,1,0,1") == ["ERROR"]  # not with GNSS
    assert ask(kit, "AT%XSYSTEMMODE=0,0,0,0,1") == ["OK"]
    assert ask(kit, 'AT%LOCATION=2,"59.91","10.75","12",100,0') == ["OK"]
    ask(kit, "AT+CEREG=2")
    ask(kit, "AT+CFUN=1")
    monitor = value_of("AT%XMONITOR", ask(kit, "AT%XMONITOR")[0])
    assert (monitor["act"], monitor["band"], monitor["plmn"]) == (14, 256, "90198")
    assert monitor["further"] == [0, 0, 0, 0]
    assert value_of("AT%CONEVAL", ask(kit, "AT%CONEVAL")[0])["band"] == 256
    assert value_of("AT%XCBAND", ask(kit, "AT%XCBAND")[0]) == {"band": 256}
    assert value_of("AT+CEREG?", ask(kit, "AT+CEREG?")[0])["act"] == 14
    assert value_of("AT%XSYSTEMMODE?", ask(kit, "AT%XSYSTEMMODE?")[0])["ntn_nb_iot"] == 1


@pytest.mark.parametrize(
    "command",
    [
        'AT%LOCATION=2,"91","10.75","12",100,0',
        'AT%LOCATION=2,"north","10.75","12",100,0',
        'AT%LOCATION=2,59.9,"10.75","12",100,0',
        "AT%LOCATION=3",
        "AT%XSYSTEMMODE=0,0,0,0,2",
        "AT%XSYSTEMMODE=0,0,0,0,1,0",
    ],
)
def test_firmware_for_satellites_refuses_what_is_no_place_and_no_mode(command: str) -> None:
    kit = switched_on(model="nrf9151", firmware="mfw_nrf9151-ntn_1.0.1")
    assert ask(kit, command) == ["ERROR"]


@pytest.mark.parametrize(
    "command", ["AT%XSYSTEMMODE=0,0,0,0,1", 'AT%LOCATION=2,"59.91","10.75","12",100,0']
)
def test_other_firmware_knows_no_satellites(command: str) -> None:
    kit = switched_on()
    assert ask(kit, command) == ["ERROR"]
    assert ask(kit, "AT%XSYSTEMMODE=?")[0] == "%XSYSTEMMODE: (0,1),(0,1),(0,1),(0-4)"
    assert ask(kit, "AT%XCBAND=?")[0].endswith(",66)")
