"""Kits by their USB identity, and ports by any of their names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from at.ports import usb
from at.ports.usb import (
    UsbPort,
    device_of,
    kit_ports,
    known_kits,
    ports_of_kit,
    resolve,
    same_port,
    system_ports,
    usb_kit_at,
)
from at.protocol.errors import PortNotFound


def kit(device: str, serial: str = "000960012345", interface: int = 0) -> UsbPort:
    return UsbPort(device, 0x1366, 0x1051, serial, "1-2.3", interface)


def test_a_kit_is_found_by_its_serial_number_whatever_its_port_is_called() -> None:
    ports = [kit("/dev/ttyACM7", interface=0), kit("/dev/ttyACM8", interface=2)]
    assert resolve("serial:960012345", listing=lambda: ports) == ("/dev/ttyACM7", True)
    assert resolve("serial:000960012345/1", listing=lambda: ports) == ("/dev/ttyACM8", True)
    assert resolve("serial:960012345", rtscts=False, listing=lambda: ports)[1] is False
    moved = [kit("COM12")]
    assert resolve("serial:000960012345", listing=lambda: moved) == ("COM12", True)
    with pytest.raises(PortNotFound):
        resolve("serial:1", listing=lambda: ports)
    with pytest.raises(PortNotFound):  # zeros alone are no number, and a port without one no kit
        resolve("serial:000", listing=lambda: [UsbPort("/dev/ttyS0"), *ports])
    for wrong in ("serial:", "serial:960012345/", "serial:960012345/console", "serial:960012345/²"):
        with pytest.raises(PortNotFound, match=f"'{wrong}' names no port of a kit"):
            resolve(wrong, listing=lambda: ports)
    with pytest.raises(PortNotFound):
        resolve("serial:960012345/2", listing=lambda: ports)


def test_a_port_is_the_same_by_whatever_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "ttyACM0"
    device.touch()
    (tmp_path / "kit").symlink_to(device)
    plugged_in = [kit(str(device))]
    monkeypatch.setattr(usb, "kit_ports", lambda _, number: kit_ports(plugged_in, number))
    assert same_port("serial:000960012345", "serial:960012345")
    assert same_port("serial:000960012345", str(device))
    assert same_port(str(tmp_path / "kit"), str(device))
    assert not same_port("serial:1", str(device)), "it is not plugged in"
    assert same_port("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
    assert device_of("virtual:state/kit.json") == "virtual:state/kit.json"


@pytest.mark.parametrize(
    ("vendor", "serial", "model"),
    [
        (0x1366, "000960012345", "nRF9160 DK"),
        (0x1366, "960012345", "nRF9160 DK"),
        (0x1366, "001050912345", "nRF9161 DK"),
        (0x1366, "001051212345", "nRF9151 DK"),
        (0x1366, "001052012345", "nRF9151 DK"),
        (0x1366, "001055012345", "Thingy:91 X"),
        (0x1915, "THINGY91X_F39CC1B120D", "Thingy:91 X"),
        (0x1915, "thingy91x_f39cc1b120d", "Thingy:91 X"),
        (0x1915, "THINGY91_F39CC1B120D", "Thingy:91"),
        (0x1366, "000960112345", None),
        (0x1366, "001050012345", None),
        (0x0403, "000960012345", None),
    ],
)
def test_kits_are_known_by_vendor_and_serial_number(
    vendor: int, serial: str, model: str | None
) -> None:
    port = UsbPort("x", vendor, 0x1051, serial)
    assert (port.model.name if port.model else None) == model
    assert kit_ports([port], serial.lstrip("0")) == [port]


def test_the_ports_of_a_kit_are_found_by_any_of_its_names() -> None:
    left = [kit("/dev/ttyACM0"), kit("/dev/ttyACM1", interface=2)]
    right = [kit("/dev/ttyACM2", "001050912345")]
    stranger = UsbPort("/dev/ttyUSB0", 0x0403, 0x6001, "FT1")
    listing = [*left, stranger, *right]
    for name in ("/dev/ttyACM1", "serial:960012345", "serial:000960012345/1"):
        assert ports_of_kit(name, lambda: listing) == left
    assert ports_of_kit("serial:FT1", lambda: listing) == [stranger]
    for name in ("/dev/ttyUSB0", "/dev/ttyS0", "tcp://127.0.0.1:1", "serial:1"):
        assert ports_of_kit(name, lambda: listing) == []
    assert known_kits(listing) == {"000960012345": left, "001050912345": right}


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_a_kit_is_known_by_a_link_to_its_port_too(tmp_path: Path) -> None:
    link = tmp_path / "by-id"
    link.symlink_to("/dev/ttyACM0")
    ports = [kit("/dev/ttyACM0"), kit("/dev/ttyACM1", interface=2)]
    assert ports_of_kit(str(link), lambda: ports) == ports
    assert resolve(str(link), listing=lambda: ports) == (str(link), True)


def test_a_port_is_on_a_kit_also_by_its_name_on_windows() -> None:
    ports = [kit("COM12"), kit("COM13", interface=2)]
    assert usb_kit_at("COM13", lambda: ports) == ports[0]
    assert usb_kit_at("virtual:", lambda: ports) is None


def test_ports_are_listed_in_the_order_of_their_places_and_interfaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(device: str, location: str | None, description: str = "n/a") -> ListPortInfo:
        port = ListPortInfo(device, skip_link_detection=True)
        port.location, port.description = location, description
        return port

    found = [
        listed("/dev/ttyACM1", "1-2:1.0", "J-Link"),
        listed("/dev/ttyACM0", "1-2:1.2"),
        listed("/dev/cu.usbmodem0003", "20-1"),  # macOS names no interface
        listed("/dev/cu.usbmodem0001", "20-1"),
        listed("/dev/ttyS0", None),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: found)
    assert [(port.device, port.usb_path, port.interface) for port in system_ports()] == [
        ("/dev/ttyS0", "", 0),
        ("/dev/ttyACM1", "1-2", 0),
        ("/dev/ttyACM0", "1-2", 2),
        ("/dev/cu.usbmodem0001", "20-1", 1),
        ("/dev/cu.usbmodem0003", "20-1", 3),
    ]
    assert {port.description for port in system_ports()} == {"", "J-Link"}
