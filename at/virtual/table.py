"""Every command that the virtual modem knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from at.virtual.families import (
    cells,
    clock,
    credentials,
    firmware_update,
    gnss,
    identity,
    keys,
    network,
    nrf_cloud,
    packet,
    power,
    serial_modem,
    sim,
    sleep,
    wifi,
)
from at.virtual.kit import Answer, Kit, ok
from at.virtual.request import BadRequest, Form, Request

Handler = Callable[[Kit, Request], Answer]


def _list_of(signs: str) -> Handler:
    """Return +CLAC or #XCLAC: the commands whose names begin with one of `signs`."""

    def command_list(_kit: Kit, request: Request) -> Answer:
        if request.form is not Form.RUN:
            raise BadRequest
        own = [name for name in COMMANDS if name and name[0] in signs and name not in wifi.COMMANDS]
        return ok(*(f"AT{name}" for name in own))

    return command_list


COMMANDS: Mapping[str, Handler] = {
    **identity.COMMANDS,
    **power.COMMANDS,
    **network.COMMANDS,
    **sim.COMMANDS,
    **packet.COMMANDS,
    **sleep.COMMANDS,
    **cells.COMMANDS,
    **clock.COMMANDS,
    **credentials.COMMANDS,
    **keys.COMMANDS,
    **wifi.COMMANDS,
    **serial_modem.COMMANDS,
    **nrf_cloud.COMMANDS,
    **gnss.COMMANDS,
    **firmware_update.COMMANDS,
    "+CLAC": _list_of("+%"),
    "#XCLAC": _list_of("#"),
}
