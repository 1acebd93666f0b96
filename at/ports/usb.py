"""The kits by their USB identity, and the device that a port's name leads to.

Identities: the nRF91 kits' own documentation and Nordic's credential tool (USB vendor with the
start of the serial number; a J-Link's product id only says which USB functions are on).
"""

import os
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from at.protocol.errors import PortNotFound

SEGGER, NORDIC = 0x1366, 0x1915


class KitModel(Struct, frozen=True):
    """A kind of kit; its AT port is the first in the order of its interfaces."""

    name: str
    vendor: int
    serials: tuple[str, ...]
    rtscts: bool = True

    @property
    def board(self) -> str:
        """The board's name in Zephyr: "nrf9161dk"."""
        return "".join(c for c in self.name.lower() if c.isalnum())


MODELS = (
    KitModel("nRF9160 DK", SEGGER, ("0009600",)),
    KitModel("nRF9161 DK", SEGGER, ("0010509",)),
    KitModel("nRF9151 DK", SEGGER, ("0010512", "0010520")),
    KitModel("nRF9131 EK", SEGGER, ("0010510",)),
    KitModel("Thingy:91 X", SEGGER, ("0010550", "0010551", "0010513"), rtscts=False),
    KitModel("Thingy:91 X", NORDIC, ("THINGY91X",), rtscts=False),
    KitModel("Thingy:91", NORDIC, ("THINGY91", "PCA20035"), rtscts=False),
)


class UsbPort(Struct, frozen=True):
    """A serial port as the system lists it; without USB, `vendor` is None."""

    device: str
    vendor: int | None = None
    product: int | None = None
    serial: str = ""
    usb_path: str = ""
    """The path on the bus; "1-2.4" is a socket of a hub."""
    interface: int = 0
    description: str = ""

    @property
    def model(self) -> KitModel | None:
        """The kit that the port belongs to, None if it is not a known one."""
        serial = self.serial.zfill(12) if self.vendor == SEGGER else self.serial.upper()
        kits = (kit for kit in MODELS if kit.vendor == self.vendor)
        return next((kit for kit in kits if serial.startswith(kit.serials)), None)


Listing: TypeAlias = Callable[[], list[UsbPort]]
"""Returns the serial ports of this system: as they are now, or as they were a moment ago."""


def system_ports() -> list[UsbPort]:
    """Return the serial ports of this system, sorted by USB path and interface."""
    from serial.tools import list_ports

    ports = []
    for port in list_ports.comports():
        usb_path, interface = _location(port.location or "", port.device)
        ports.append(
            UsbPort(
                port.device,
                port.vid,
                port.pid,
                port.serial_number or "",
                usb_path,
                interface,
                "" if port.description in {None, "n/a"} else str(port.description),
            )
        )
    return sorted(ports, key=lambda port: (port.usb_path, port.interface, port.device))


def kit_ports(ports: Iterable[UsbPort], serial: str) -> list[UsbPort]:
    """Return the ports of the kit with this serial number; leading zeros do not matter."""
    number = serial.lstrip("0").upper()
    return [port for port in ports if port.serial and port.serial.lstrip("0").upper() == number]


def ports_of_kit(name: str, listing: Listing) -> list[UsbPort]:
    """Return the ports of the kit that a port's name belongs to; none if it is on no known kit.

    A kit that is named as "serial:NUMBER" need not be a known one.
    """
    ports = listing()
    if name.startswith("serial:"):
        return kit_ports(ports, name.removeprefix("serial:").partition("/")[0])
    device = device_of(name)
    listed = next((port for port in ports if port.device == device), None)
    return kit_ports(ports, listed.serial) if listed is not None and listed.model else []


def known_kits(ports: Iterable[UsbPort]) -> dict[str, list[UsbPort]]:
    """Return the ports of each known kit among `ports`, by its serial number."""
    kits: dict[str, list[UsbPort]] = {}
    for port in ports:
        if port.model is not None:
            kits.setdefault(port.serial, []).append(port)
    return kits


def resolve(
    name: str, rtscts: bool | None = None, listing: Listing = system_ports
) -> tuple[str, bool]:
    """Return the device of a port's name, and whether to use hardware flow control.

    "serial:NUMBER" is the AT port of that kit, "serial:NUMBER/1" another of its ports by index;
    everything else is a device already. Raises PortNotFound.
    """
    if not name.startswith("serial:"):
        if rtscts is None:
            device = device_of(name)
            rtscts = device.startswith("/dev/ttyACM") and _has_flow_control(device, listing)
        return name, rtscts
    number, slash, index = name.removeprefix("serial:").partition("/")
    if not number or (slash and not index.isdecimal()):
        raise PortNotFound(
            f"{name!r} names no port of a kit",
            hint="write it serial:NUMBER, or serial:NUMBER/1 for another of its ports; "
            "`cellagent ports` shows the number",
        )
    ports = kit_ports(listing(), number)
    if not ports:
        raise PortNotFound(
            f"no kit with serial number {number} is plugged in",
            hint="`cellagent ports` lists the kits that are",
        )
    model = ports[0].model
    place = int(index or 0)
    if place >= len(ports):
        raise PortNotFound(f"the kit {number} has {len(ports)} ports, not {place + 1}")
    flow = model.rtscts if model else False
    return ports[place].device, flow if rtscts is None else rtscts


def usb_kit_at(name: str, listing: Listing = system_ports) -> UsbPort | None:
    """Return the first port of the kit that a port's name belongs to, None where none is known."""
    if not name.startswith(("serial:", "/dev/", "COM")):
        return None
    return next(iter(ports_of_kit(name, listing)), None)


def same_port(one: str, other: str, listing: Listing = system_ports) -> bool:
    """Return whether two names mean one port; links and serial numbers are resolved."""
    if one.startswith("serial:") and other.startswith("serial:"):
        return _number(one) == _number(other)
    return device_of(one, listing) == device_of(other, listing)


def same_kit(one: str, other: str, listing: Listing = system_ports) -> bool:
    """Return whether two ports are seen to be of one kit: the same port, or of one USB device."""
    kit = usb_kit_at(one, listing)
    return same_port(one, other, listing) or (kit is not None and kit == usb_kit_at(other, listing))


def _number(port: str) -> str:
    return port.removeprefix("serial:").lstrip("0").upper()


def device_of(port: str, listing: Listing = system_ports) -> str:
    """Return the device that a port's name leads to now; the name itself where it leads nowhere."""
    if port.startswith("serial:"):
        try:
            return resolve(port, rtscts=False, listing=listing)[0]
        except PortNotFound:
            return port
    if "/" in port and "://" not in port and not port.startswith("virtual:"):
        return os.path.realpath(port)
    return port


def _has_flow_control(device: str, listing: Listing) -> bool:
    kit = usb_kit_at(device, listing)
    return bool(kit and kit.model and kit.model.rtscts)


def _location(location: str, device: str) -> tuple[str, int]:
    """Return USB path and interface number of a location such as "1-2.4:1.0"."""
    usb_path, _, rest = location.partition(":")
    match = re.search(r"\.(\d+)$", rest)
    if match:
        return usb_path, int(match.group(1))
    # macOS names no interface: the device's own number keeps the order.
    digits = re.search(r"(\d+)$", device)
    return usb_path, int(digits.group(1)) if digits else 0
