"""Boards are found by name or by the kits that the system lists, each with its USB location."""

from __future__ import annotations

from pathlib import Path

import pytest
from serial.tools import list_ports, list_ports_common

from agent.errors import UsageError
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.discovery import (
    all_boards,
    chosen_boards,
    connected_boards,
    named_boards,
)

SLOTS = {"1-2.4": "A4", "tcp://127.0.0.1:4000": "far"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """A kit with two ports, and a port that belongs to no kit, as the system lists them."""
    devices = [tmp_path / name for name in ("ttyACM0", "ttyACM1", "ttyS0")]
    ports = []
    for index, device in enumerate(devices):
        device.touch()
        port = list_ports_common.ListPortInfo(str(device))
        if index < 2:
            port.vid, port.pid, port.serial_number = 0x1366, 0x1059, "001050934568"
            port.location = f"1-2.4:1.{2 * index}"
        ports.append(port)
    monkeypatch.setattr(list_ports, "comports", lambda *_, **__: ports)
    return devices


def test_every_kit_is_found_once_by_its_serial_number(hub: list[Path]) -> None:
    assert hub
    [found] = all_boards(SLOTS)
    assert found == BoardLocation(found.serial, "1-2.4", "A4", f"serial:{found.serial}")
    assert found.serial.endswith("1050934568")


def test_named_ports_keep_their_order_and_name_and_none_is_listed_twice(hub: list[Path]) -> None:
    far, near = "tcp://127.0.0.1:4000", str(hub[0])
    found = named_boards([far, near, far], SLOTS)
    assert [(one.port, one.slot) for one in found] == [(far, "far"), (near, "A4")]
    assert found[0] == BoardLocation("", "", "far", far)


def test_a_board_is_in_its_slot_by_whatever_name(hub: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(hub[0])
    for name in ("serial:1050934568", "serial:001050934568", str(hub[0]), str(link)):
        found = named_boards([name], SLOTS)
        assert found == [BoardLocation("001050934568", "1-2.4", "A4", name)]


@pytest.mark.parametrize(("names", "all_kits"), [((), False), (("/dev/ttyACM0",), True)])
def test_boards_are_named_or_all_are_asked_for_and_never_both(
    names: tuple[str, ...], all_kits: bool
) -> None:
    with pytest.raises(UsageError, match=r"name the boards, or say --all|is named as well"):
        chosen_boards(names, all_kits=all_kits, slots={})


def test_a_mark_changes_when_a_device_is_connected_anew(hub: list[Path]) -> None:
    device = hub[0]
    locations = named_boards([str(device), "tcp://127.0.0.1:4000"], SLOTS)
    before = connected_boards(locations)
    assert set(before) == {str(device), "tcp://127.0.0.1:4000"}
    assert connected_boards(locations) == before
    device.rename(device.with_name("gone"))
    device.touch()
    assert connected_boards(locations)[str(device)] != before[str(device)]
    assert connected_boards(locations)["tcp://127.0.0.1:4000"] == before["tcp://127.0.0.1:4000"]


def test_a_kit_that_is_not_connected_is_not_listed(hub: list[Path]) -> None:
    assert hub
    assert connected_boards([BoardLocation("9", "", "", "serial:9")]) == {}
