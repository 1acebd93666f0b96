"""Every fault that can be switched on does what its description says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.virtual.faults import FAULTS, Faults
from at.virtual.modem import VirtualModem
from at.virtual.options import OptionError, VirtualOptions
from tests.support.modem.virtual_modems import ask, switched_on

OF_UPDATES = {"flash-failed", "update-reverted"}
SERIAL_MODEM = {"dialect": "serial-modem"}


class Bench:
    """A kit with a fault, and somebody who asks it and waits."""

    def __init__(self, *faults: str, instant: bool = True, **options: str) -> None:
        given = VirtualOptions(faults=faults, instant=instant, **options)
        self.modem = VirtualModem(given, now=0.0, unix_time=1_700_000_000.0)

    def ask(self, line: str, wait_s: float = 0.0) -> str:
        self.modem.receive(line.encode() + b"\r", now=self.modem.kit.now)
        self.modem.advance(self.modem.kit.now + wait_s)
        return self.modem.data_to_send().decode("latin-1")


def told(fault: str, line: str) -> str:
    """Return what a kit prints that asks for what can be refused, is switched on and asked."""
    bench = Bench(fault)
    first = ("AT%MDMEV=1", "AT+CPSMS=1", 'AT+CEDRXS=2,4,"0101"', "AT+CEREG=5", "AT+CFUN=1", "AT")
    return "".join(bench.ask(one, wait_s=2) for one in first) + bench.ask(line, wait_s=9)


def of_module(fault: str) -> str:
    """Return what an nRF93M1 prints that has been in the cloud, locates itself and looks there."""
    bench = Bench(fault, model="nrf93m1")
    for line in ("ATE0", "AT+CFUN=1", "AT%NRFCLOUDMESSAGE=[1]"):
        bench.ask(line, wait_s=2)
    return bench.ask("AT%NRFCLOUDFOTA=2,key", wait_s=9) + bench.ask(
        "AT%NRFCLOUDLOCATION=1,1", wait_s=9
    )


def late(fault: str, command: int) -> bool:
    bench = Bench(f"{fault}=5")
    answers = [bench.ask("AT") for _ in range(command)]
    return answers[-1] == "" and "OK" in bench.ask("", wait_s=5.1)


def noisy(fault: str) -> bool:
    bench = Bench(f"{fault}=0.2")
    return {bench.ask("AT+CGMM") for _ in range(5)} != {Bench().ask("AT+CGMM")}


def restarts() -> bool:
    printed = Bench("reset-mid-command=1", **SERIAL_MODEM).ask("AT+CGMM")
    return printed == "\r\nnRF9161-LACA\r\nReady\r\n"


def notices_first() -> bool:
    return Bench("notice-mid-answer").ask("AT+CGMM").startswith("+CEREG: 2\r\n")


def holds_a_quote() -> bool:
    bench = Bench("open-quote")
    return bench.ask("AT") == "" and bench.ask('"') == "ERROR\r\n" and bench.ask("AT") == "OK\r\n"


def takes_data() -> bool:
    bench = Bench("stuck-in-data-mode", **SERIAL_MODEM)
    return bench.ask("AT") == "" and "#XDATAMODE: 0" in bench.ask("+++")


def code(fault: str, line: str, expected: int) -> bool:
    bench = Bench(fault)
    bench.ask("AT+CMEE=1")
    return bench.ask(line) == f"+CME ERROR: {expected}\r\n"


def on(fault: str, *lines: str) -> str:
    bench = Bench(fault)
    bench.ask("AT+CEREG=5")
    bench.ask("AT+CFUN=1")
    return "".join(bench.ask(line) for line in lines)


def writes_other_line_ends() -> bool:
    bench = Bench("line-ends-changed")
    bench.ask('AT%CMNG=0,1,0,"a\nb"')
    return hashlib.sha256(b"a\r\nb").hexdigest().upper() in bench.ask("AT%CMNG=1,1,0")


def rsrp(fault: str) -> int:
    [line] = [one for one in on(fault, "AT+CESQ").splitlines() if one.startswith("+CESQ")]
    return int(line.rpartition(",")[2])


def provisions(fault: str) -> str:
    """Return what the kit says last when it is to provision itself."""
    kit = switched_on("AT+CFUN=1", firmware="serial-modem-2.0.0", faults=(fault,))
    return ask(kit, "AT#XNRFPROV")[-1]


EFFECTS: dict[str, Callable[[], bool]] = {
    "silent": lambda: [Bench("silent=2").ask("AT")] == ["OK\r\n"] and not late("silent", 9),
    "slow": lambda: late("slow", 1),
    "late-answer": lambda: late("late-answer", 3),
    "lost-bytes": lambda: noisy("lost-bytes"),
    "garbled-bytes": lambda: noisy("garbled-bytes"),
    "doubled-bytes": lambda: noisy("doubled-bytes"),
    "reset-mid-command": restarts,
    "echo": lambda: Bench("echo").ask("AT+CGMM").startswith("AT+CGMM\r"),
    "log-noise": lambda: Bench("log-noise").ask("AT+CGMM").count("] <") == 3,
    "notice-mid-answer": notices_first,
    "cmng-refused": lambda: (
        code("cmng-refused", 'AT%CMNG=0,1,0,"x"', 514)
        and code("cmng-refused=527", "AT%CMNG=3,1,0", 527)
    ),
    "memory-full": lambda: code("memory-full", 'AT%CMNG=0,1,0,"x"', 515),
    "power-warning": lambda: code("power-warning", "AT%KEYGEN=1,2,0", 528),
    "line-ends-changed": writes_other_line_ends,
    "jwt-failed": lambda: code("jwt-failed", "AT%JWT", 525),
    "keygen-failed": lambda: code("keygen-failed", "AT%KEYGEN=1,2,0", 523),
    "no-time": lambda: on("no-time", "AT+CCLK?") == "ERROR\r\n",
    "no-sim": lambda: "+CEREG: 5,90\r\n" in on("no-sim", "AT+CEREG?", "AT+CPIN?"),
    **{
        name: lambda name=name, line=line, answer=answer: answer in told(name, line)
        for name, line, answer in (
            ("sim-failed", "AT%XSIM?", "%XSIM: 0,9\r\n"),
            ("sim-pin", "AT+CPIN?", "+CPIN: SIM PIN\r\n"),
            ("sim-puk", "AT+CPIN?", "+CPIN: SIM PUK\r\n"),
            ("sim-blocked", "AT%XSIM?", "%XSIM: 0,5\r\n"),
            ("sim-locked", "AT+CPIN?", "+CPIN: PH-NET PIN\r\n"),
            ("weak", "AT+CEREG?", "+CEREG: 5,2,"),
            ("interference", "AT%XMONITOR", "%XMONITOR: 1,"),
            ("denied", "AT+CEREG?", "+CEREG: 5,3,,,,0,15\r\n"),
            ("apn-refused", "AT+CEER", '+CEER: "ESM 27"\r\n'),
            ("no-address", "AT+CGPADDR=0", '+CGPADDR: 0,""\r\n'),
            ("forbidden", "AT+COPS=?", "+COPS: (3,"),
            ("band-locked", "AT+CEREG?", "+CEREG: 5,2,"),
            ("plmn-locked", "AT+COPS?", '+COPS: 1,2,"99999"\r\n'),
            ("wrong-mode", "AT%XSYSTEMMODE?", "%XSYSTEMMODE: 0,1,0,0\r\n"),
            ("psm-refused", "AT%XMONITOR", '"11100000","11100000"'),
            ("edrx-refused", "AT+CEDRXRDP", "+CEDRXRDP: 0\r\n"),
            ("supply-low", "AT+CFUN?", "+CFUN: 4\r\n"),
            ("overheated", "AT+CFUN?", "+CFUN: 4\r\n"),
            ("reset-loop", "AT+CEREG?", "%MDMEV: RESET LOOP\r\n"),
            ("no-imei", "AT+CGSN=1", "ERROR\r\n"),
            ("not-calibrated", "AT+CEREG?", "%MDMEV: RF CALIBRATION NOT DONE\r\n"),
        )
    },
    "supply": lambda: on("supply=2900", "AT%XVBAT") == "%XVBAT: 2900\r\nOK\r\n",
    "temperature": lambda: on("temperature=-20", "AT%XTEMP?") == "%XTEMP: -20\r\nOK\r\n",
    "weak-signal": lambda: rsrp("weak-signal=9") == rsrp("slow=0") - 9,
    "not-registered": lambda: "+CEREG: 5,3,,,,0,15\r\n" in on("not-registered=3", "AT+CEREG?"),
    "old-firmware": lambda: "1.2.8" in on("old-firmware", "AT+CGMR"),
    "no-cells": lambda: "%NCELLMEAS: 1\r\n" in on("no-cells", "AT%NCELLMEAS"),
    "provisioning-failed": lambda: provisions("provisioning-failed=-3") == "#XNRFPROV: -3",
    "provisioning-rounds": lambda: provisions("provisioning-rounds") == "#XNRFPROV: 1",
    "provisioning-silent": lambda: provisions("provisioning-silent") == "OK",
    "not-onboarded": lambda: "RESPONSE,4.01" in of_module("not-onboarded"),
    "cloud-session-kept": lambda: "CONNECTING" not in of_module("cloud-session-kept"),
    "late-location": lambda: (
        "OK" not in of_module("late-location").partition("%NRFCLOUDLOCATION")[2]
    ),
    "release-offered": lambda: "UPDATE_AVAILABLE" in of_module("release-offered"),
    "stuck-in-data-mode": takes_data,
    "open-quote": holds_a_quote,
    "urc-flood": lambda: Bench("urc-flood=50").ask("AT", wait_s=1.01).count("%CESQ: ") == 50,
    "no-newline": lambda: Bench("no-newline=7000").ask("AT").startswith("x" * 7000),
    "crash": lambda: "#CD:BEGIN#" in Bench("crash=1").ask("AT", wait_s=1.5),
}


# Faults of updates have their tests in families/serial_modem/test_firmware_update.py.
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in OF_UPDATES])
def test_the_fault_does_what_it_says(name: str) -> None:
    assert FAULTS[name].description
    assert EFFECTS[name]()


@pytest.mark.parametrize(
    ("wrong", "says", "hint"),
    [
        ("nosim", "no such fault: 'nosim'; the nearest is no-sim", "did you mean 'no-sim'?"),
        ("slow=soon", "slow takes a number from 0 to 3600, not 'soon'", "write slow=2;"),
        ("slow=2*4@*", "slow takes a number from 0 to 3600, not '2*4@*'", "write slow=2;"),
        ("slow=nan", "slow takes a number from 0 to 3600, not 'nan'", "write slow=2;"),
        ("slow=", "slow takes a number from 0 to 3600, not ''", "write slow=2;"),
        ("lost-bytes=2", "lost-bytes takes a number from 0 to 1, not '2'", "write lost-bytes=0.02"),
        (
            "jwt-failed=52.5",
            "jwt-failed takes a whole number from 0 to 999",
            "write jwt-failed=525",
        ),
        ("temperature=-101", "temperature takes a whole number from -100 to 300", "=70;"),
        ("echo=1", "echo takes no argument, yet got '1'", "write echo;"),
        ("old-firmware=", "old-firmware takes a text, not ''", "write old-firmware=mfw_nrf9160"),
    ],
)
def test_a_fault_that_is_none_is_refused_with_a_right_one(wrong: str, says: str, hint: str) -> None:
    with pytest.raises(OptionError) as refused:
        Faults([wrong])
    assert says in str(refused.value)
    assert hint in refused.value.hint
    assert "`--fault help` lists all" in refused.value.hint


@given(text=st.text(max_size=20) | st.sampled_from(sorted(FAULTS)).flatmap(
    lambda name: st.text("=-.*@019e", max_size=6).map(lambda rest: name + rest)))  # fmt: skip
def test_any_text_is_a_fault_or_is_refused_with_one_that_is(text: str) -> None:
    try:
        assert {name for name in FAULTS if name in Faults([text])} == {text.partition("=")[0]}
    except OptionError as refused:
        right = refused.hint.removeprefix("write ").partition(";")[0]
        if right.startswith("did you mean "):
            right = right.split("'")[1]
        Faults([right])
