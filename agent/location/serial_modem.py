"""The position that a Serial Modem 2.0 gets by its own cloud client: #XNRFCLOUDPOS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent.errors import AgentError, NotFound, ResourceUnavailable, UsageError
from agent.location.access_points import MINIMUM, normalize_mac, select_usable
from agent.location.module import BY_CELL, BY_WIFI
from agent.location.position import Position
from at.commands.serial_modem.application import ReadSerialModemVersion, SerialModemNotice
from at.commands.serial_modem.cloud import CloudPosition, LocateByCloud, ReadCloudState

if TYPE_CHECKING:
    from agent.location.wifi.scanner import WifiScan
    from at.driver.modem import Modem

SOURCE = "#XNRFCLOUDPOS"
_MOST_CELLS = 15
_FAILED = -1
_ANSWERS_S = 120.0
_USED = {0: "SCELL", 1: "MCELL", 2: "WIFI"}


async def locate(
    modem: Modem, scan_wifi: Callable[[], Awaitable[WifiScan]] | None, method: int
) -> Position:
    """Return the position; the kit measures cells itself, this host gives it what Wi-Fi it hears.

    `method` is as for `module.locate`. Raises NotFound, UsageError, ResourceUnavailable,
    AgentError, AtError.
    """
    if ((await modem.send(ReadSerialModemVersion())).major or 2) < 2:
        raise UsageError(
            "Serial Modem 1 cannot locate itself by a count of cells",
            hint="`cellagent config set location.by host`",
        )
    if not (await modem.send(ReadCloudState())).ready:
        raise ResourceUnavailable(
            "the kit has no session with its cloud, in which it would ask where it is",
            hint="`cellagent modem at AT#XNRFCLOUD=1`",
        )
    points = await _points(scan_wifi) if method & BY_WIFI and scan_wifi is not None else ()
    cells = _MOST_CELLS if method & BY_CELL else 0
    if not cells and not points:
        raise NotFound(f"fewer than {MINIMUM} access points are heard", hint="`--with cell`")
    with modem.notices(SOURCE) as notices:
        await modem.send(LocateByCloud(cells, points))
        try:
            async with asyncio.timeout(_ANSWERS_S):
                async for notice in notices:
                    if isinstance(notice, SerialModemNotice):
                        return _position(notice.value)
        except TimeoutError:
            pass
    raise AgentError(f"the kit told no position within {_ANSWERS_S:g} s", hint="try again")


async def _points(
    scan_wifi: Callable[[], Awaitable[WifiScan]],
) -> tuple[tuple[str, int | None], ...]:
    """Return the access points that may locate, none where they are too few to."""
    usable = select_usable((await scan_wifi()).points).usable
    if len(usable) < MINIMUM:
        return ()
    return tuple((normalize_mac(one.bssid) or "", one.rssi_dbm) for one in usable)


def _position(told: object) -> Position:
    assert isinstance(told, CloudPosition)
    if told.lat is None or told.lon is None:
        why = "" if told.status == _FAILED else f" (error {told.status})"
        raise NotFound(f"the kit's cloud told no position{why}", hint="`cellagent scan cells`")
    used = _USED.get(told.type or 0)
    return Position(told.lat, told.lon, told.uncertainty, fulfilled_with=used)
