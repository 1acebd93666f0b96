"""The Serial Modem's way to its cloud: #XNRFCLOUD #XNRFCLOUDPOS, as 1.x and 2.0 print them."""

import re

from at.commands.serial_modem.application import SerialModemNotice
from at.protocol.command import Command, OkCommand, Parameters, at_command
from at.protocol.errors import UnsafeArgument
from at.protocol.notices import register_readers
from at.protocol.values import Fields, Record

_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}", re.ASCII)


class CloudPosition(Record, frozen=True):
    """#XNRFCLOUDPOS: status 0 ok, -1 failed, > 0 an error of the cloud.

    `type` is 0 for a single cell, 1 for several, 2 for Wi-Fi.
    """

    status: int
    type: int | None = None
    lat: float | None = None
    lon: float | None = None
    uncertainty: float | None = None


class CloudState(Record, frozen=True):
    """#XNRFCLOUD: a read reply adds `sec_tag` and `device_id`."""

    ready: int
    send_location: int
    sec_tag: int | None = None
    device_id: str | None = None


@at_command("AT#XNRFCLOUDPOS=")
class LocateByCloud(OkCommand, frozen=True):
    """AT#XNRFCLOUDPOS: `cells` 0-15; the host gives the Wi-Fi scan, at least two access points.

    The firmware measures cells itself meanwhile: do not use %NCELLMEAS.
    """

    cells: int
    access_points: tuple[tuple[str, int | None], ...] = ()
    """MAC address and level in dBm (-128..0), if it is known."""

    def parameters(self) -> Parameters:
        """Return counts, then address and level of each access point."""
        if not 0 <= self.cells <= 15:
            raise UnsafeArgument(f"a count of {self.cells} cells is not in 0..15")
        if len(self.access_points) == 1:
            raise UnsafeArgument("a position by Wi-Fi needs at least two access points")
        listed: list[int | str | None] = []
        for mac, rssi in self.access_points:
            if not _MAC.fullmatch(mac):
                raise UnsafeArgument(f"{mac!r} is no MAC address")
            if rssi is not None and not -128 <= rssi <= 0:
                raise UnsafeArgument(f"a level of {rssi} dBm is not in -128..0")
            listed += [mac] if rssi is None else [mac, rssi]
        return (self.cells, 1 if self.access_points else 0, *listed)


@at_command("AT#XNRFCLOUD=")
class ConnectCloud(OkCommand, frozen=True):
    """AT#XNRFCLOUD=<op>[,<send_location>]: 0 disconnect, 1 connect; the state comes as a notice.

    A session keeps the credentials that it began with: new ones need 0, then 1.
    """

    op: int
    send_location: int | None = None


@at_command("AT#XNRFCLOUD?")
class ReadCloudState(Command[CloudState], frozen=True):
    """AT#XNRFCLOUD?."""

    def read(self, fields: Fields) -> CloudState:
        """Return connection and identity."""
        return _cloud_state(fields)


def _position(fields: Fields) -> CloudPosition:
    if fields.left == 1:
        status = fields.integer("status", -1)
        if status == 0:
            raise fields.fail("type", "is missing")
        return CloudPosition(status)
    # Serial Modem 1 prints a position without a status in front. A latitude has a point: else it is
    # a type behind a status, in a line that was cut.
    if fields.left == 4 and "." not in (fields.peek(1).text or ""):
        raise fields.fail("lat", "has no point")
    status = fields.integer("status", 0, 0) if fields.left == 5 else 0
    kind = fields.integer("type", 0, 2)
    lat, lon = fields.decimal("lat", 90), fields.decimal("lon", 180)
    uncertainty = fields.decimal("uncertainty")
    if uncertainty < 0:
        raise fields.fail("uncertainty", "is negative")
    return CloudPosition(status, kind, lat, lon, uncertainty)


def _cloud_state(fields: Fields) -> CloudState:
    ready, send_location = fields.integer("ready", 0, 1), fields.integer("send_location", 0, 1)
    if fields.left == 0:
        return CloudState(ready, send_location)
    sec_tag, device_id = fields.integer("sec_tag", 0, 2**32 - 1), fields.quoted("device_id")
    return CloudState(ready, send_location, sec_tag, device_id)


register_readers(SerialModemNotice, {"#XNRFCLOUDPOS": _position, "#XNRFCLOUD": _cloud_state})
