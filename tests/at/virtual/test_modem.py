"""The virtual modem prints replies and notices as each of the three firmwares does."""

from __future__ import annotations

import pytest

from at.commands.catalog import command_of
from at.virtual.modem import PROMPT, VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.modem.virtual_modems import ask, printed, switched_on


def test_the_at_host_loses_what_is_sent_while_a_command_runs() -> None:
    modem = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    modem.receive(b"AT+CFUN=1\r", now=0.0)
    modem.receive(b"AT+CFUN?\r", now=0.01)
    modem.advance(0.5)
    assert modem.data_to_send() == b"OK\r\n"


def test_the_serial_modem_keeps_what_is_sent_while_a_command_runs() -> None:
    modem = VirtualModem(VirtualOptions(dialect="serial-modem"), now=0.0, unix_time=0.0)
    modem.receive(b"AT+CFUN=1\r", now=0.0)
    modem.receive(b"AT+CFUN?\r", now=0.01)
    modem.advance(0.5)
    assert modem.data_to_send() == b"\r\nOK\r\n\r\n+CFUN: 1\r\n\r\nOK\r\n"


@pytest.mark.parametrize("dialect", ["at-host", "serial-modem"])
def test_the_list_of_commands_names_those_that_are_answered(dialect: str) -> None:
    kit = switched_on(dialect=dialect)
    lists = ["AT+CLAC", "AT#XCLAC"] if dialect == "serial-modem" else ["AT+CLAC"]
    for command in lists:
        *names, final = ask(kit, command)
        assert final == "OK"
        assert len(names) == len(set(names))
        assert command in names[1:]  # in front it would look like an echo
        assert not any("+CW" in name for name in names)  # a companion's
    assert command_of("AT+CPSMS?") is not None


@pytest.mark.parametrize(
    "command",
    [
        *("AT+CREG?", "AT+CGREG?", "AT+C5GREG?", "AT+CSQ", "ATI", "ATZ"),  # of other makers' modems
        *("AT+CLAC=1", "AT#XCLAC", "AT#XNRFCLOUD?"),
    ],
)
def test_a_command_of_another_firmware_is_an_error(command: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == ["ERROR"]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("at-host", "+CFUN: 0\r\nOK\r\n"),
        ("serial-modem", "\r\n+CFUN: 0\r\n\r\nOK\r\n"),
        ("shell", "at AT+CFUN?\r\n+CFUN: 0\r\nOK\r\n" + PROMPT.decode()),
    ],
)
def test_a_reply_has_the_line_ends_of_its_firmware(dialect: str, text: str) -> None:
    modem = switched_on(dialect=dialect)
    assert printed(modem, "at AT+CFUN?" if dialect == "shell" else "AT+CFUN?") == text


def test_an_error_has_its_number_only_where_that_was_requested() -> None:
    modem = switched_on()
    assert ask(modem, "AT%CMNG=3,7,0") == ["ERROR"]
    ask(modem, "AT+CMEE=1")
    assert ask(modem, "AT%CMNG=3,7,0") == ["+CME ERROR: 513"]
    assert ask(modem, "AT+NOSUCH") == ["ERROR"]


def test_nothing_is_received_while_the_kit_boots() -> None:
    modem = switched_on(dialect="serial-modem", instant=False)
    modem.restart()
    modem.receive(b"AT\r", now=1.0)
    modem.advance(2.0)
    assert modem.data_to_send() == b"Ready\r\n"
