"""Released Python libraries for modems on the virtual modem: atlib and python-gsmmodem-new."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.modem.served_kit import PEERS, ServedKit

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not (PEERS / "python").exists(), reason="no .peers here: ./scripts/peers makes it"
    ),
]
Serve = Callable[..., ServedKit]
DIALECTS = pytest.mark.parametrize("dialect", ["serial-modem", "at-host"])

ATLIB = """
import json, sys
from atlib import LTE_Device
device = LTE_Device(sys.argv[1], 115200)
refused = device.command("AT+NOSUCH=1")
identity = [device.get_imei(), device.get_manufacturer(), device.get_model()]
print(json.dumps([*identity, device.get_sim_status(), device.command("AT+CGMR").lines,
                  refused.is_ok, type(refused.error).__name__]))
"""
GSMMODEM = """
import json, sys
from gsmmodem.exceptions import CommandError
from gsmmodem.modem import GsmModem
modem = GsmModem(sys.argv[1], 115200)
try:
    modem.connect()
except CommandError as error:
    ended = str(error)
print(json.dumps([modem.imei, modem.manufacturer, modem.model, modem.revision, modem.imsi, ended]))
modem.close()
"""


@DIALECTS
def test_atlib_reads_the_kit_and_tells_a_refusal(serve: Serve, dialect: str) -> None:
    kit = serve("--dialect", dialect)
    switched_on(kit)
    *identity, sim, firmware, accepted, error = told(kit, ATLIB)
    assert identity == [kit.saved()["imei"], "Nordic Semiconductor ASA", "nRF9161-LACA"]
    assert (sim, firmware) == ("OK", ["mfw_nrf91x1_2.0.4"])
    assert (accepted, error) == (False, "ATCommandError")


@DIALECTS
def test_gsmmodem_reads_the_kit_and_stops_at_a_command_that_no_kit_has(
    serve: Serve, dialect: str
) -> None:
    kit = serve("--dialect", dialect)
    switched_on(kit)
    imei, maker, model, firmware, imsi, ended = told(kit, GSMMODEM)
    assert (imei, maker) == (kit.saved()["imei"], "Nordic Semiconductor ASA")
    assert (model, firmware) == ("nRF9161-LACA", "mfw_nrf91x1_2.0.4")
    assert imsi.isdigit()
    assert ended == "ATZ", "a modem of the field is reset to its user profile; an nRF91 has none"


def switched_on(kit: ServedKit) -> None:
    script = "import serial,sys; p=serial.Serial(sys.argv[1],timeout=60); "
    kit.run("python", "-c", script + "p.write(b'AT+CFUN=1\\r'); p.read_until(b'OK')", str(kit.port))


def told(kit: ServedKit, program: str) -> list[object]:
    return json.loads(kit.run("python", "-c", program, str(kit.port)).stdout)
