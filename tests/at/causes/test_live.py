"""A kit that is asked tells its cause, and is left as it was: each fault end to end."""

from __future__ import annotations

import random

import pytest

from at.causes.diagnosis import Cause, causes_of_log
from at.causes.live import causes_of_modem
from at.driver.modem import Modem
from at.virtual.modem import VirtualModem
from at.virtual.options import MODELS, VirtualOptions
from at.virtual.transport import VirtualTransport
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

CAUSES = {
    "no-sim": "sim-missing",
    "sim-failed": "sim-failure",
    "sim-pin": "sim-pin",
    "sim-puk": "sim-puk",
    "sim-blocked": "sim-blocked",
    "sim-locked": "sim-locked",
    "no-cells": "no-cell",
    "weak": "weak-signal",
    "interference": "interference",
    "denied": "emm-15",
    "denied=8": "emm-8",
    "denied=200": "emm-200",
    "apn-refused": "esm-27",
    "apn-refused=33": "esm-33",
    "no-address": "no-ip",
    "forbidden": "emm-11",
    "band-locked": "band-lock",
    "plmn-locked": "plmn-lock",
    "wrong-mode": "system-mode",
    "psm-refused": "psm-not-granted",
    "edrx-refused": "edrx-not-granted",
    "supply-low": "supply-low",
    "supply=3050": "supply-low",
    "overheated": "overheated",
    "temperature=90": "overheated",
    "no-imei": "no-imei",
    "no-time": "no-time",
    "not-registered": "system-mode",
    "not-registered=4": "no-cell",
    "not-registered=90": "sim-failure",
    "old-firmware=mfw_nrf9160_1.2.8": "firmware-gate",
    "old-firmware=mfw-pti_nrf91x1_2.3.8": "pti-firmware",
    "old-firmware=mfw-nr+_nrf91x1_1.1.0": "dect-firmware",
}


async def asked(*before: str, **options: object) -> tuple[list[Cause], list[str]]:
    """Return the causes of a virtual kit, and what its settings are before and after."""
    modem = Modem(VirtualTransport(instant=True, **options))
    await modem.open()
    settings = []
    try:
        for line in before:
            await modem.execute(line)
        for _ in range(2):
            settings.append([(await modem.execute(line)).lines for line in SETTINGS])
            if len(settings) == 1:
                causes = await causes_of_modem(modem, watch_s=0)
    finally:
        await modem.close()
    assert settings[0] == settings[1]
    return causes, [line for lines in settings[0] for line in lines]


SETTINGS = ("AT+CFUN?", "AT+CNEC?", "AT%XSYSTEMMODE?", "AT%XBANDLOCK?", "AT+CPSMS?")
ASKS = ("AT+CPSMS=1", 'AT+CEDRXS=2,4,"0101"', "AT%MDMEV=1", "AT+CEREG=2", "AT+CFUN=1", "AT")


@pytest.mark.parametrize(("fault", "cause"), CAUSES.items())
async def test_a_kit_with_a_fault_tells_its_cause(fault: str, cause: str) -> None:
    found, _ = await asked(*ASKS, faults=(fault,))
    assert cause in [one.cause for one in found[:2]], found


@pytest.mark.parametrize(
    ("fault", "cause"), [("reset-loop", "reset-loop"), ("not-calibrated", "rf-not-calibrated")]
)
def test_what_a_kit_tells_once_is_found_in_its_log(fault: str, cause: str) -> None:
    kit = VirtualModem(VirtualOptions(faults=(fault,), instant=True), now=0.0, unix_time=0.0)
    for number, line in enumerate(ASKS):
        kit.receive(line.encode() + b"\r", now=float(number))
    found = causes_of_log(kit.data_to_send())
    assert (found[0].cause, found[0].certainty) == (cause, "certain")


async def test_the_level_of_its_subscription_is_put_back() -> None:
    modem = Modem(VirtualTransport(instant=True, faults=("denied",)))
    await modem.open()
    for line in ("AT+CEREG=1", "AT+CFUN=1"):
        await modem.execute(line)
    found = await causes_of_modem(modem, watch_s=0)
    assert found[0].cause == "emm-15"
    assert (await modem.execute("AT+CEREG?")).lines == ("+CEREG: 1,3",)
    await modem.close()


@pytest.mark.parametrize("seed", range(200))
async def test_a_healthy_kit_is_registered_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    model = chance.choice(sorted(MODELS))
    mode = chance.choice(("1,0,0,0", "1,1,1,0", "0,1,0,0", "1,1,0,2", "1,0,1,1"))
    before = [f"AT%XSYSTEMMODE={mode}", f"AT+CEREG={chance.randrange(6)}", "AT%MDMEV=1"]
    if chance.random() < 0.5:
        before.append("AT+CPSMS=1")
    before += ["AT+CFUN=1", "AT"]
    found, _ = await asked(*before, model=model, seed=seed)
    assert [one.cause for one in found] == ["registered"], found


def test_a_question_that_is_refused_is_no_cause() -> None:
    async def session() -> list[Cause]:
        far = LineModem({"AT": "", "AT+CGMR": "mfw_nrf91x1_2.0.4"}.get)
        far.reads = {}
        modem = Modem(far.transport)
        await modem.open()
        try:
            return await causes_of_modem(modem, watch_s=0)
        finally:
            await modem.close()

    (found,) = virtual_time.run(session())
    assert found.cause == "nothing-found"
    assert "modem why" not in found.next, "it sends a person where they come from"
