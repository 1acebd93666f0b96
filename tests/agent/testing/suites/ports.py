"""The AT port in every way that a test may have it."""

import subprocess
import sys

import pytest
import serial

from at.commands.identity import ReadRevision


async def test_a_coroutine(modem):
    assert (await modem.send(ReadRevision())).revision.startswith("mfw_nrf91x1_")


def test_a_plain_function(modem_sync):
    modem_sync.subscribe("AT+CEREG=5")
    assert modem_sync.execute("AT+CEREG?").lines[0].startswith("+CEREG: 5,")
    assert modem_sync.send(ReadRevision()).revision


def test_code_that_knows_pyserial_alone(kit_port):
    with serial.Serial(kit_port, timeout=10) as port:
        for byte in b"AT+CGMM\r":
            port.write(bytes([byte]))
        assert port.read_until(b"OK\r\n").startswith(b"nRF9161")


def test_another_program(kit_port):
    words = [sys.executable, "-m", "agent", "modem", "at", "--port", kit_port, "AT+CGSN=1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "+CGSN:" in done.stdout


@pytest.mark.parametrize("command", ["AT+CFUN?", "AT+CESQ", "AT%XVBAT", "AT+CGSN", "AT+COPS?"])
def test_many(modem_sync, command):
    assert modem_sync.execute(command).ok


def test_a_refusal(modem_sync):
    assert modem_sync.execute("AT%NOSUCH").final == "ERROR"
