"""An nRF93M1 as what hears and what locates: its %BCINFO, its %WIFISCAN, its own cloud client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import AgentError, NotFound
from agent.location.access_points import AccessPoint
from agent.location.cell_values import identity, is_network, level
from agent.location.position import Position
from agent.location.wifi.scanner import WifiScan, WifiUnavailable, scan_by
from at.commands.nrf93m1.cloud import (
    MULTI_CELL,
    SINGLE_CELL,
    WIFI,
    LocateByModule,
    ModulePosition,
    ModulePositionNotice,
)
from at.commands.nrf93m1.coap import CoapNotice
from at.commands.nrf93m1.radio import CellInformation, CellLevel, ScanWifiFor
from at.protocol.errors import AtError, CommandRejected

if TYPE_CHECKING:
    from at.driver.modem import Modem
    from at.driver.stream import Stream
    from at.protocol.notices import Notice

_SCAN_MS, _ROUNDS, _MOST, _ROUND_S = 12000, 1, 20, 5
_SCAN_LIMIT_S = 20.0
_USED = {SINGLE_CELL: "SCELL", MULTI_CELL: "MCELL", WIFI: "WIFI"}
_NOT_ONBOARDED = "4.01"
SOURCE = "%NRFCLOUDLOCATION"
BY_CELL, BY_WIFI, BY_ALL = SINGLE_CELL | MULTI_CELL, WIFI, SINGLE_CELL | MULTI_CELL | WIFI


def is_module(modem: Modem) -> bool:
    """Return whether the modem is an nRF93M1, or the shell of its kit."""
    return modem.dialect.traits.is_module


@dataclass(frozen=True, slots=True)
class ModuleWifi:
    """The module as a source of Wi-Fi scans: passive, of 2.4 GHz alone."""

    modem: Modem

    async def scan(self, deadline_s: float) -> WifiScan:
        """Scan once. Raises WifiUnavailable."""
        command = ScanWifiFor(_SCAN_MS, _ROUNDS, _MOST, _ROUND_S)
        try:
            heard, notes = await scan_by(self.modem, command, max(deadline_s, _SCAN_LIMIT_S))
        except AtError as error:
            raise WifiUnavailable(f"the module's Wi-Fi: {error}", hint=error.hint) from error
        points = (AccessPoint(one.mac, one.rssi, one.ssid.encode(), one.channel) for one in heard)
        return WifiScan("%WIFISCAN", tuple(points), notes)


def cells_to_json(cells: CellInformation) -> list[dict[str, object]]:
    """Return the serving cell of %BCINFO as the service takes it, with its neighbours.

    Empty without one. Its levels are dBm and dB already.
    """
    serving = cells.serving
    if serving is None or not serving.identified or not is_network(serving.mcc):
        return []
    entry = {**identity(serving.mcc + serving.mnc, serving.cell_id, serving.tac), **_level(serving)}
    if cells.neighbors:
        entry["nmr"] = [_level(neighbor) for neighbor in cells.neighbors]
    return [entry]


def _level(cell: CellLevel) -> dict[str, object]:
    return level(cell.earfcn, cell.phys_cell_id, cell.rsrp, cell.rsrq)


async def locate(modem: Modem, method: int) -> Position:
    """Return the position that the module's own client gets. Raises NotFound, AgentError, AtError.

    `method` is a sum of SINGLE_CELL, MULTI_CELL and WIFI.
    """
    with modem.notices(CoapNotice, ModulePositionNotice) as notices:
        try:
            told = await modem.send(LocateByModule(method))
            if told is None:
                async with asyncio.timeout(LocateByModule.timeout_s):
                    told = await _late(notices)
        except TimeoutError as error:
            raise AgentError(
                f"the module told no position within {LocateByModule.timeout_s:g} s",
                hint="try again",
            ) from error
        except CommandRejected:
            for notice in notices.take():
                _refuse(notice)
            raise
    if told.lat is None or told.lon is None:
        raise NotFound(
            f"the module told no position ({told.status})", hint="`cellagent scan cells`"
        )
    used = _USED.get(told.method or 0)
    return Position(told.lat, told.lon, told.uncertainty, fulfilled_with=used)


async def _late(notices: Stream[Notice]) -> ModulePosition:
    """Return the position that comes behind OK."""
    async for notice in notices:
        if isinstance(notice, ModulePositionNotice):
            return notice.value
        _refuse(notice)
    raise AgentError("the modem's notices ended before its position")


def _refuse(notice: Notice) -> None:
    """Raise the error that a step of the module's client tells."""
    step = notice.value if isinstance(notice, CoapNotice) else None
    if step is not None and step.code == _NOT_ONBOARDED:
        raise AgentError(
            "the cloud does not know the module (CoAP 4.01)",
            hint="onboard it to your account: `AT%REGJWT` makes the token",
        )
    if step is not None and (step.error or (step.code or "")[:1] in {"4", "5"}):
        raise NotFound(
            f"the module's client got no position ({step.error or step.code})",
            hint="`cellagent modem check` shows whether it is on a network",
        )
