"""What a test does to its kit."""

from pathlib import Path

import pytest
import serial

from agent.errors import UsageError
from at.virtual.options import OptionError


def revision(port):
    with serial.Serial(port, timeout=10) as opened:
        opened.write(b"AT+CFUN?\r")
        return opened.read_until(b"OK\r\n")


def test_the_cable(kit, kit_port):
    assert b"+CFUN: 1" in revision(kit_port)
    kit.unplug()
    assert not Path(kit_port).exists()
    kit.plug_in()
    assert b"+CFUN: 1" in revision(kit_port)


def test_the_power(kit, kit_port, console):
    kit.power_off()
    assert not Path(kit_port).exists()
    kit.power_on()
    assert b"+CFUN: 0" in revision(kit_port)
    kit.power_cycle()
    assert b"+CFUN: 0" in revision(kit_port)


def test_a_fault(kit, modem_sync):
    kit.fault("temperature=80")
    assert modem_sync.execute("AT%XTEMP?").lines == ("%XTEMP: 80",)
    with pytest.raises(OptionError, match="no such fault: 'temprature'"):
        kit.mend("temprature")
    kit.mend("temperature")
    assert modem_sync.execute("AT%XTEMP?").lines != ("%XTEMP: 80",)


def test_a_place(kit, modem_sync):
    before = modem_sync.execute("AT+CESQ").lines
    with pytest.raises(UsageError, match="no place on Earth"):
        kit.move_to(10.7, 599)
    assert modem_sync.execute("AT+CESQ").lines == before
    kit.move_to(59.9, 10.7)
    kit.notify("+CEREG: 2")
    assert modem_sync.notice("+CEREG") == "+CEREG: 2"
    assert modem_sync.execute("AT+CESQ").lines != before
