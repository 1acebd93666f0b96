"""Networks, packet data and settings are answered as in the manual."""

from __future__ import annotations

import pytest
from virtual_modems import ask, switched_on

from at.commands.catalog import command_of
from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("AT+CEMODE?", "+CEMODE: 0"),
        ("AT+CEMODE=?", "+CEMODE: (0,2)"),
        ("AT+CGATT?", "+CGATT: 1"),
        ("AT+CGCONTRDP=0", '+CGCONTRDP: 0,,"iot.example","","","10.160.0.1","10.160.0.2",,,,,1500'),
        ("AT%COPS=?", '%COPS: (2,"","","00101",7)'),
        ("AT%XDATAPRFL?", "%XDATAPRFL: 2"),
        ("AT+CNEC=?", "+CNEC: (0,8,16,24)"),
        ("AT+CGACT?", "+CGACT: 0,1"),
        ("AT+CGPADDR", '+CGPADDR: 0,"10.160.33.51"'),
        ("AT+CGDCONT?", '+CGDCONT: 0,"IP","iot.example","10.160.33.51",0,0'),
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


@pytest.mark.parametrize(
    "command",
    [
        *("AT+CEMODE=1", "AT+CEMODE=3", "AT+CEMODE", "AT+CGATT=0", "AT%XDATAPRFL=5"),
        *("AT+CNEC=1", "AT%XDATAPRFL", "AT+CGCONTRDP=1", 'AT+CGDCONT=0,"X25"', "AT%XVBAT?"),
    ],
)
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == ["ERROR"]


def test_settings_survive_a_restart() -> None:
    kit = switched_on("AT+CEMODE=2", "AT%XDATAPRFL=4")
    kit.restart()
    kit.advance(kit.kit.now)
    kit.data_to_send()  # of the boot
    assert ask(kit, "AT+CEMODE?")[0] == "+CEMODE: 2"
    assert ask(kit, "AT%XDATAPRFL?")[0] == "%XDATAPRFL: 4"


def test_a_scan_waits_for_the_connection_to_end() -> None:
    kit = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    for line in (b"AT+CMEE=1\r", b"AT+CFUN=1\r"):
        kit.receive(line, now=kit.kit.now)
    kit.advance(5.0)
    assert kit.kit.session.connected
    kit.data_to_send()
    assert ask(kit, "AT+COPS=?") == ["+CME ERROR: 516"]


def test_the_system_mode_changes_only_while_the_radios_are_off() -> None:
    kit = switched_on("AT+CFUN=1")
    assert ask(kit, "AT%XSYSTEMMODE=0,1,0,0") == ["ERROR"]
    ask(kit, "AT+CFUN=4")
    assert ask(kit, "AT%XSYSTEMMODE=0,0,0,0") == ["ERROR"]
    assert ask(kit, "AT%XSYSTEMMODE=0,1,0,0") == ["OK"]
    ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+COPS?")[0] == '+COPS: 0,2,"00101",9'  # NB-IoT


def test_a_context_is_defined_and_removed() -> None:
    kit = switched_on('AT+CGDCONT=1,"IPV6","private"')
    assert ask(kit, "AT+CGDCONT?")[0] == '+CGDCONT: 1,"IPV6","private","",0,0'
    ask(kit, "AT+CGDCONT=1")
    assert ask(kit, "AT+CGDCONT?")[0] == '+CGDCONT: 0,"","","",0,0'


def test_a_factory_reset_erases_credentials_only_with_0() -> None:
    kit = switched_on('AT%CMNG=0,7,0,"test"', "AT%XFACTORYRESET=1")
    assert "7,0" in kit.kit.saved.credentials
    ask(kit, "AT%XFACTORYRESET=0")
    assert not kit.kit.saved.credentials
