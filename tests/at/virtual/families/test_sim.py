"""The SIM answers as in the manual, and does not where there is none."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, assert_answered, switched_on


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ('AT+CPINR="SIM PUK"', '+CPINR: "SIM PUK",10'),
        ("AT+CRSM=176,12258,0,0,10", '+CRSM: 144,0,"989909101038040000F1"'),
        ("AT+CRSM=176,28423,0,0,0", '+CRSM: 144,0,"080910108143000010"'),
        ("AT+CRSM=176,28423,0,8,2", '+CRSM: 103,0,""'),
        ("AT+CRSM=192,28480", '+CRSM: 106,130,""'),
        ('AT+CRSM=214,28589,0,0,1,"00"', '+CRSM: 105,130,""'),
        ("AT+CPIN?", "+CPIN: READY"),
        ("AT%XSIM?", "%XSIM: 1"),
    ],
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    assert_answered(command, answer)


@pytest.mark.parametrize(
    "command", ["AT+CRSM=1,28423", "AT+CRSM=176", 'AT+CPINR="CUSTOM PIN"', "AT+CIMI?", "AT+CPIN"]
)
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == ["ERROR"]


@pytest.mark.parametrize(
    "command", ["AT+CRSM=176,12258,0,0,10", 'AT+CPINR="SIM PIN"', "AT+CIMI", "AT%XICCID"]
)
def test_a_sim_that_is_not_there_is_not_read(command: str) -> None:
    kit = switched_on("AT+CMEE=1", "AT+CFUN=1", faults=("no-sim",))
    assert ask(kit, command) == ["+CME ERROR: 10"]


def test_a_card_that_waits_for_its_pin_takes_it() -> None:
    kit = switched_on("AT+CMEE=1", "AT+CFUN=1", faults=("sim-pin",))
    assert ask(kit, 'AT+CPIN="4321"') == ["+CME ERROR: 16"]
    assert ask(kit, 'AT+CPINR="SIM PIN"') == ['+CPINR: "SIM PIN",2', "OK"]
    assert ask(kit, 'AT+CPIN="1234"') == ["OK"]
    kit.advance(5)
    assert ask(kit, "AT+CPIN?")[0] == "+CPIN: READY"
    assert ask(kit, "AT+CEREG?")[0].startswith("+CEREG: 0,1")
    assert ask(kit, 'AT+CPIN="1234"') == ["+CME ERROR: 3"]


def test_the_third_wrong_pin_blocks_the_card() -> None:
    kit = switched_on("AT+CMEE=1", "AT+CFUN=1", faults=("sim-pin",))
    for _ in range(3):
        assert ask(kit, 'AT+CPIN="4321"') == ["+CME ERROR: 16"]
    assert ask(kit, "AT+CPIN?")[0] == "+CPIN: SIM PUK"


def test_the_files_of_the_sim_hold_the_numbers_that_the_commands_give() -> None:
    kit = switched_on("AT+CFUN=1")
    imsi, iccid = ask(kit, "AT+CIMI")[0], ask(kit, "AT%XICCID")[0].removeprefix("%XICCID: ")
    assert imsi.startswith("00101")
    for file, digits in ((28423, f"809{imsi}"), (12258, iccid)):
        content = ask(kit, f"AT+CRSM=176,{file},0,0,0")[0].split('"')[1]
        swapped = "".join(b + a for a, b in zip(content[::2], content[1::2], strict=True))
        assert swapped == digits
