"""200 recordings of healthy sessions with a virtual kit, in the shapes that people keep."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from at.causes.diagnosis import causes_of_log
from at.virtual.modem import VirtualModem
from at.virtual.options import MODELS, VirtualOptions

PEM = '"-----BEGIN CERTIFICATE-----\nMIIBkTCB+wIJAKHBfpE=\n-----END CERTIFICATE-----\n"'
START = (
    *("AT", "ATE0", "AT+CMEE=1", "AT+CGMR", "AT+CGSN=1", "AT%HWVERSION", "AT+CPIN?", "AT+CFUN?"),
    *("AT+CEREG=5", "AT%MDMEV=1", "AT+CNEC=24", "AT+CSCON=1", "AT%XSIM=1", "AT+CMEE=0"),
    *("AT%XSYSTEMMODE=1,1,1,0", "AT%XSYSTEMMODE=1,0,0,0", 'AT+CGDCONT=0,"IP","iot.example"'),
    *('AT+CPSMS=1,"","","10101111","01101100"', 'AT+CEDRXS=2,4,"0101"', "AT+CPSMS=0"),
)
USE = (
    *("AT+CEREG?", "AT+COPS?", "AT%XMONITOR", "AT+CESQ", "AT%CONEVAL", "AT+CGPADDR=0", "AT+CCLK?"),
    *("AT%NCELLMEAS", "AT%XVBAT", "AT%XTEMP?", "AT+CEER", "AT%XICCID", "AT+CIMI", "AT%XSIM?"),
    *("AT+CGDCONT?", "AT+CGATT?", "AT+CGACT?", "AT+CPSMS?", "AT+CEDRXRDP", "AT%CMNG=1"),
    *("AT#XSLMVER", "AT#XSOCKET=1,1,0", "AT#XSOCKET=0"),
    *('AT#XGETADDRINFO="host.example"', 'AT%JWT=0,600,"kit"', "AT%ATTESTTOKEN", "AT%KEYGEN=?"),
    *("AT#XPING", "AT+CMEE?", "AT%XBANDLOCK?", "AT%XCBAND", "AT+CCLK?", "AT#XSOCKET?"),
)
PROVISIONING = (
    *("AT+CFUN=4", "AT%CMNG=1,16842753", "AT%CMNG=3,16842753,0", "AT%KEYGEN=16842753,2,0"),
    *(f"AT%CMNG=0,16842753,0,{PEM}", "AT%CMNG=1", "AT+CFUN=1", "AT", "AT"),
)
CHATTER = (
    "<inf> app: heartbeat {}, 0 errors",
    "<dbg> sensor: temperature 21.{} C, humidity 40 %",
    "<inf> fota: update {} % done",
    "<wrn> app: watchdog fed late by {} ms",
    "<inf> storage: connected to flash, {} entries",
    "<inf> app: sent 64 bytes to server in {} ms, OK",
    "<dbg> net: socket {} polled, timeout 500",
    "<inf> ui: no error since {} s",
    "<inf> app: TLS session {} resumed",
    "<inf> date_time: valid time obtained, {}",
    "<inf> download: chunk {} of 900, err 0",
    "<inf> gnss: tracking 7 satellites, using 5, fix in {} ms",
    "<dbg> mqtt: keep-alive sent, error: 0, {} ms left",
    "<dbg> heap: {} bytes free, 0 allocations failed",
    "<inf> app: reset reason: pin, boot {}",
    "<inf> app: coredump: none to send, {} checked",
    "<inf> app: download of image complete, {} bytes, rebooting",
)
SHAPES = (
    ("{}", "{}"),
    ("> {}", "{}"),
    ("TX: {}", "RX: {}"),
    ("AT> {}", "AT< {}"),
    ("modem >> {}", "modem << {}"),
    ("[12:00:01.250] --> {}", "[12:00:01.270] <-- {}"),
)


def steps(chance: random.Random) -> list[str]:
    """Return the commands of a session: a start, use, and now and then a reset by its user."""
    commands = chance.sample(START, chance.randrange(3, len(START)))
    commands += ["AT+CFUN=1", "AT", *chance.sample(USE, chance.randrange(len(USE)))]
    if chance.random() < 0.3:
        commands += PROVISIONING
    if chance.random() < 0.3:
        commands += ["AT+CFUN=0", chance.choice(("AT#XRESET", "AT")), "AT+CFUN=1", "AT"]
    return [*commands, *chance.sample(USE, 5)]


NRF91 = sorted(name for name in MODELS if name.startswith("nrf91"))


def recorded(seed: int) -> str:
    chance = random.Random(seed)
    options = VirtualOptions(model=chance.choice(NRF91), seed=seed, instant=True)
    kit = VirtualModem(options, now=0.0, unix_time=1_790_000_000.0)
    sent, received = chance.choice(SHAPES)
    return "\n".join(_lines(kit, chance, sent, received)) + "\n"


def _lines(kit: VirtualModem, chance: random.Random, sent: str, received: str) -> Iterator[str]:
    yield "*** Booting nRF Connect SDK v2.9.0 ***"
    for number, command in enumerate(steps(chance)):
        if chance.random() < 0.4:
            said = chance.choice(CHATTER).format(chance.randrange(1000))
            yield f"[00:00:{number % 60:02}.{chance.randrange(1000):03},000] {said}"
        yield sent.format(command)
        kit.receive(command.encode() + b"\r", now=float(2 * number))
        kit.advance(2.0 * number + 1)
        for line in kit.data_to_send().decode().splitlines():
            if line:
                yield received.format(line)


@pytest.mark.parametrize("seed", range(200))
def test_a_healthy_recording_has_no_cause(seed: int) -> None:
    log = recorded(seed)
    found = [one.cause for one in causes_of_log(log.encode())]
    assert found in (["registered"], ["nothing-found"], ["command-refused"]), log
