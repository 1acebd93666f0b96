"""Every command that the virtual modem knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from at.virtual.families import (
    cells,
    clock,
    credentials,
    firmware_update,
    identity,
    keys,
    network,
    power,
    serial_modem,
    wifi,
)
from at.virtual.kit import Answer, Kit
from at.virtual.request import Request

Handler = Callable[[Kit, Request], Answer]

COMMANDS: Mapping[str, Handler] = {
    **identity.COMMANDS,
    **power.COMMANDS,
    **network.COMMANDS,
    **cells.COMMANDS,
    **clock.COMMANDS,
    **credentials.COMMANDS,
    **keys.COMMANDS,
    **wifi.COMMANDS,
    **serial_modem.COMMANDS,
    **firmware_update.COMMANDS,
}
