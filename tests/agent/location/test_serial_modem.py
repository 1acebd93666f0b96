"""A Serial Modem 2.0 that locates itself: cells of its own, the Wi-Fi that this host hears."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent.errors import NotFound, ResourceUnavailable, UsageError
from agent.location import serial_modem
from agent.location.access_points import AccessPoint
from agent.location.module import BY_ALL, BY_CELL, BY_WIFI
from agent.location.wifi.scanner import WifiScan
from at.driver.modem import Modem
from at.virtual.state import CredentialSlot
from at.virtual.transport import VirtualTransport


@asynccontextmanager
async def kit(
    firmware: str = "serial-modem-2.0.0", *, session: bool = True
) -> AsyncIterator[tuple[Modem, VirtualTransport]]:
    transport = VirtualTransport(dialect="serial-modem", firmware=firmware, instant=True)
    modem = Modem(transport)
    await modem.open()
    transport.modem.kit.saved.credentials["16842753,2"] = CredentialSlot("")
    try:
        with modem.notices("+CEREG", "#XNRFCLOUD") as notices:
            await modem.execute("AT+CEREG=5")
            await modem.execute("AT+CFUN=1")
            async for notice in notices:
                if notice.line.startswith("+CEREG: 1"):
                    break
            if session:
                assert (await modem.execute("AT#XNRFCLOUD=1")).ok
                await anext(notices)
        yield modem, transport
    finally:
        await modem.close()


def heard_by(transport: VirtualTransport) -> WifiScan:
    kit = transport.modem.kit
    points = (
        AccessPoint(one.access_point.bssid, one.rssi_dbm)
        for one in kit.world.access_points(kit.position)
    )
    return WifiScan("test", tuple(points))


@pytest.mark.parametrize(
    ("method", "used"), [(BY_CELL, "MCELL"), (BY_WIFI, "WIFI"), (BY_ALL, "WIFI")]
)
async def test_it_is_located_by_what_it_and_this_host_hear(method: int, used: str) -> None:
    async with kit() as (modem, transport):

        async def scan() -> WifiScan:
            return heard_by(transport)

        position = await serial_modem.locate(modem, scan, method)
        where = transport.modem.kit.position
        assert position.distance_m(where.lat, where.lon) < 1
        assert position.fulfilled_with == used


async def test_without_wifi_its_cells_alone_are_asked_for_and_nothing_without_either() -> None:
    async def one() -> WifiScan:
        return WifiScan("test", (AccessPoint("00:00:5e:00:53:01", -50),))

    async with kit() as (modem, _):
        assert (await serial_modem.locate(modem, None, BY_ALL)).fulfilled_with == "MCELL"
        for lone in (None, one):
            with pytest.raises(NotFound, match="access points"):
                await serial_modem.locate(modem, lone, BY_WIFI)

    async def elsewhere() -> WifiScan:
        return WifiScan("test", tuple(AccessPoint(f"00:00:5e:00:53:0{n}", -50) for n in range(3)))

    async with kit() as (modem, _):
        with pytest.raises(NotFound, match="told no position"):
            await serial_modem.locate(modem, elsewhere, BY_WIFI)


async def test_a_kit_without_session_or_of_generation_1_says_what_to_do() -> None:
    async with kit(session=False) as (modem, _):
        with pytest.raises(ResourceUnavailable) as told:
            await serial_modem.locate(modem, None, BY_CELL)
        assert "AT#XNRFCLOUD=1" in told.value.hint
    async with kit("serial-modem-1.0.0", session=False) as (modem, _):
        with pytest.raises(UsageError):
            await serial_modem.locate(modem, None, BY_CELL)
