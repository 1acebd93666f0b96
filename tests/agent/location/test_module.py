"""A position by what an nRF93M1 hears, and by its own client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.profile import KitSettings
from agent.errors import AgentError, NotFound, UsageError
from agent.location import module
from agent.location.access_points import select_usable
from agent.location.cell_scan import ModemOff, NoCells, scan_cells
from agent.location.locator import LocationMethod, Locator, OwnClient
from agent.location.wifi.choice import wifi_source
from at.commands.nrf93m1.radio import ReadCells
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.modem.answers import notice_of


@asynccontextmanager
async def kit(
    *faults: str, model: str = "nrf93m1", on: bool = True
) -> AsyncIterator[tuple[Modem, VirtualTransport]]:
    transport = VirtualTransport(model=model, instant=True, faults=faults)
    modem = Modem(transport)
    await modem.open()
    try:
        if on:
            await modem.execute("AT+CFUN=1")
        yield modem, transport
    finally:
        await modem.close()


async def test_cells_are_those_that_the_module_tells_with_levels_as_they_are() -> None:
    async with kit() as (modem, transport):
        scan = await scan_cells(modem)
        heard = transport.modem.kit.cells_in_range()
    assert (scan.source, scan.radio, scan.on_cell) == ("%BCINFO", "lte", True)
    (cell,) = scan.cells
    first = heard[0].cell
    assert (cell["mcc"], cell["mnc"], cell["eci"], cell["tac"]) == (1, 1, first.eci, first.tac)
    assert (cell["rsrp"], cell["pci"]) == (heard[0].rsrp_dbm, first.pci)
    assert isinstance(cell["nmr"], list)
    assert [each["rsrp"] for each in cell["nmr"]] == [each.rsrp_dbm for each in heard[1:9]]


@pytest.mark.contract("D8.2")
@given(
    st.integers(0, 2**32 - 1), st.integers(0, 65535), st.sampled_from(["001", "000", "999"]),
    st.integers(-160, -20), st.integers(-43, 20),
)  # fmt: skip
def test_whatever_the_module_hears_only_legal_values_go_out(
    cell_id: int, tac: int, mcc: str, rsrp: int, rsrq: int
) -> None:
    level = f"262143,503,{rsrp},{rsrq}"
    serving = f'%BCINFOSC: {level},"{mcc}","01","{cell_id:08X}","{tac:04X}"'
    cells = module.cells_to_json(ReadCells().parse([serving, f"%BCINFONC: {level}"]))
    assert bool(cells) is (cell_id <= 0x0FFFFFFF and mcc != "000")
    for sent in (entry for cell in cells for entry in (cell, *cell["nmr"])):  # type: ignore[misc]
        assert -157 <= sent.get("rsrp", -157) <= -44
        assert -34.5 <= sent.get("rsrq", -34.5) <= 3.5
        assert sent.get("mcc", 1) in range(1, 1000)


async def test_a_module_that_is_off_or_on_no_cell_says_so() -> None:
    async with kit(on=False) as (modem, _):
        with pytest.raises(ModemOff):
            await scan_cells(modem)
    async with kit("no-cells") as (modem, _):
        with pytest.raises(NoCells, match="on no cell"):
            await scan_cells(modem)


async def test_wifi_is_heard_by_the_module_and_no_companion_is_needed() -> None:
    async with kit() as (modem, transport):
        for word in ("auto", "module"):
            source = wifi_source(word, KitSettings(port="/dev/ttyACM0"), modem)
            assert isinstance(source, module.ModuleWifi)
            scan = await source.scan(5.0)
            heard = transport.modem.kit.world.access_points(transport.modem.kit.position)
        wanted = [each.access_point.bssid for each in heard if each.access_point.channel < 15]
        assert [point.bssid for point in scan.points] == wanted[:20]
        assert len(select_usable(scan.points).usable) > 2
        assert not isinstance(wifi_source("none", None, modem), module.ModuleWifi)
    async with kit(model="nrf9161") as (modem, _):
        with pytest.raises(UsageError, match="no nRF93M1"):
            wifi_source("module", None, modem)


@pytest.mark.parametrize("faults", [(), ("late-location",)])
async def test_the_module_locates_itself_before_its_ok_or_after_it(faults: tuple[str, ...]) -> None:
    async with kit(*faults) as (modem, transport):
        for method, used in ((module.BY_WIFI, "WIFI"), (module.BY_CELL, "MCELL")):
            position = await module.locate(modem, method)
            where = transport.modem.kit.position
            assert position.distance_m(where.lat, where.lon) < 1
            assert position.fulfilled_with == used


async def test_a_locator_that_the_module_answers_for_scans_nothing() -> None:
    async with kit() as (modem, _):
        locator = Locator(
            None,  # type: ignore[arg-type] - nothing is sent by the host
            None,
            scan_wifi=None,
            scan_cells=None,
            good_enough_m=200,
            of_kit=False,
            own_client=OwnClient(lambda method: module.locate(modem, method), module.SOURCE),
        )
        fix = await locator.locate()
        assert fix.method is LocationMethod.GROUND_FIX
        assert fix.sources == ("%NRFCLOUDLOCATION",)
        assert fix.position is not None


@pytest.mark.parametrize(
    ("fault", "on", "error", "words"),
    [
        ("not-onboarded", True, AgentError, "does not know the module"),
        ("cloud-session-kept", False, NotFound, "NO_BEARER"),
    ],
)
async def test_a_refusal_of_the_cloud_has_its_cause(
    fault: str, on: bool, error: type[Exception], words: str
) -> None:
    async with kit(fault, on=on) as (modem, _):
        with pytest.raises(error, match=words):
            await module.locate(modem, module.BY_CELL)


@pytest.mark.parametrize("step", ["RESPONSE,4.04", "RESPONSE,5.03", "ERROR,NO_BEARER"])
def test_a_step_that_failed_is_no_longer_waited_for(step: str) -> None:
    module._refuse(notice_of("%COAP: RESPONSE,2.05"))
    with pytest.raises(NotFound, match=step.partition(",")[2]):
        module._refuse(notice_of(f"%COAP: {step}"))
