"""Thirty tests of a host's ways to use a modem, for any kit."""

import re

import pytest
import serial

from at.commands.identity import ReadRevision

READS = {
    "AT+CGMI": "Nordic Semiconductor ASA",
    "AT+CGMM": r"nRF91\d\d-[A-Z]{4}",
    "AT+CGMR": r"mfw_nrf91\w+_\d+\.\d+\.\d+",
    "AT+CGSN": r"\d{15}",
    "AT+CGSN=1": r'\+CGSN: "\d{15}"',
    "AT+CESQ": r"\+CESQ: 99,99,255,255,\d+,\d+",
    "AT%XVBAT": r"%XVBAT: \d{4}",
    "AT%XTEMP?": r"%XTEMP: \d+",
    "AT+CFUN?": r"\+CFUN: \d+",
    "AT+CEREG?": r"\+CEREG: \d,\d+.*",
    "AT+CMEE?": r"\+CMEE: 1",
    "AT+CGSN=0": r"\w+",
    "AT%HWVERSION": r"%HWVERSION: nRF91\d\d .*",
}


@pytest.mark.parametrize("command", READS)
def test_reads(modem_sync, command):
    (line, *_) = modem_sync.execute(command).lines
    assert re.fullmatch(READS[command], line)


@pytest.mark.parametrize("mode", [0, 4])
def test_is_turned_off(modem_sync, mode):
    assert modem_sync.execute(f"AT+CFUN={mode}").final == "OK"
    assert modem_sync.execute("AT+CFUN?").lines == (f"+CFUN: {mode}",)


@pytest.mark.parametrize("level", [1, 2, 5])
def test_subscribes(modem_sync, level):
    modem_sync.subscribe(f"AT+CEREG={level}")
    assert modem_sync.execute("AT+CEREG?").lines[0].startswith(f"+CEREG: {level},")


@pytest.mark.parametrize("command", ["AT%NOSUCH", "AT+CFUN=99", "AT+CEREG=9"])
def test_is_refused(modem_sync, command):
    assert not modem_sync.execute(command).ok


async def test_a_typed_command(modem):
    assert re.fullmatch(r"mfw_nrf91\w+_\d+\.\d+\.\d+", (await modem.send(ReadRevision())).revision)


@pytest.mark.parametrize("command", ["AT+CGMM", "AT+CGMR", "AT%XVBAT"])
async def test_a_coroutine_reads(modem, command):
    (line,) = (await modem.execute(command)).lines
    assert re.fullmatch(READS[command], line)


async def test_commands_one_after_another(modem):
    for mode in (0, 4, 0):
        assert (await modem.execute(f"AT+CFUN={mode}")).ok
        assert (await modem.execute("AT+CFUN?")).lines == (f"+CFUN: {mode}",)


async def test_a_coroutine_is_refused(modem):
    assert (await modem.execute("AT+CFUN=99")).final in {"ERROR", "+CME ERROR"}


@pytest.mark.parametrize("command", ["AT+CGMI", "AT+CGMM"])
def test_code_that_knows_pyserial_alone(kit_port, command):
    with serial.Serial(kit_port, timeout=5) as port:
        port.write(f"{command}\r".encode())
        said = port.read_until(b"OK\r\n").decode()
    assert re.fullmatch(READS[command] + "\r\nOK\r\n", said)


def test_a_byte_at_a_time(kit_port):
    with serial.Serial(kit_port, timeout=5) as port:
        for byte in b"AT+CFUN=0\r":
            port.write(bytes([byte]))
        assert b"".join(iter(lambda: port.read(1), b"\n")) == b"OK\r"
