"""Discovery of boards: on named ports, or on every connected kit."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent.errors import UsageError
from agent.provisioning.boards.board import BoardLocation
from at.driver.opening import is_system_port
from at.ports.usb import Listing, UsbPort, device_of, known_kits, resolve, system_ports
from at.protocol.errors import PortNotFound


def named_boards(
    names: Sequence[str], slots: Mapping[str, str], listing: Listing = system_ports
) -> list[BoardLocation]:
    """Return the locations of boards on named ports; a kit's location includes its USB port."""
    ports = listing()
    listed = {port.device: port for port in ports}
    locations = []
    for name in dict.fromkeys(names):
        port = listed.get(device_of(name, lambda: ports))
        locations.append(
            _location(port, name, slots)
            if port
            else BoardLocation("", "", slots.get(name, ""), name)
        )
    return locations


def all_boards(slots: Mapping[str, str], listing: Listing = system_ports) -> list[BoardLocation]:
    """Return the location of every connected kit, by its USB identity."""
    return [_location(port, f"serial:{port.serial}", slots) for port in _kits(listing())]


def chosen_boards(
    names: Sequence[str],
    *,
    all_kits: bool,
    slots: Mapping[str, str],
    listing: Listing = system_ports,
) -> list[BoardLocation]:
    """Return named boards, or all. Raises UsageError if neither or both were asked for."""
    if names and all_kits:
        raise UsageError(f"--all takes every kit, and {', '.join(names)} is named as well")
    if not (names or all_kits):
        raise UsageError(
            "name the boards, or say --all",
            hint="`--all` takes every one, `cellagent ports` lists them",
        )
    return all_boards(slots, listing) if all_kits else named_boards(names, slots, listing)


def connected_boards(locations: Sequence[BoardLocation]) -> dict[str, tuple[BoardLocation, object]]:
    """Return the locations where something is connected, by port, each with a mark.

    The mark changes when the device was disconnected in between, however briefly. A port that is no
    device of this system (tcp://HOST:PORT) is always there.
    """
    listed = system_ports()
    marks = ((location, _mark(location.port, listed)) for location in locations)
    return {location.port: (location, mark) for location, mark in marks if mark is not None}


def _mark(name: str, listed: Sequence[UsbPort]) -> object:
    if not is_system_port(name):
        return name
    try:
        device, _ = resolve(name, rtscts=False, listing=lambda: list(listed))
    except PortNotFound:
        return None
    if sys.platform != "win32":  # where a port is a name, and no file
        with suppress(OSError):
            found = Path(device).stat()
            return found.st_ino, found.st_rdev, found.st_ctime_ns
    return next((port for port in listed if port.device == device), None)


def _kits(ports: Sequence[UsbPort]) -> list[UsbPort]:
    """Return any port of each kit: they all state its serial number and its USB path."""
    return [kit[0] for kit in known_kits(ports).values()]


def _location(port: UsbPort, name: str, slots: Mapping[str, str]) -> BoardLocation:
    return BoardLocation(port.serial, port.usb_path, slots.get(port.usb_path, ""), name)
