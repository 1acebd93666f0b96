"""What a location request may hold, checked field by field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeGuard

from agent.standin.device_cloud.refusals import bad_request, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAC = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}")
_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?")
_DIGITS = re.compile(r"[0-9]{1,3}")
CELL_LISTS = ("lte", "ltecatm", "nbiot")
_MOST = 1000
# name -> smallest, largest.
_CELL_REQUIRED = {"eci": (0, 268435455), "tac": (0, 65535)}
_CELL_OPTIONAL: dict[str, tuple[float, float]] = {
    "rsrp": (-157, -44),
    "rsrq": (-34.5, 3.5),
    "pci": (0, 503),
    "earfcn": (0, 262143),
    "adv": (0, 65535),
}
_NEIGHBOR_REQUIRED = {"earfcn": (0, 262143), "pci": (0, 503)}
_NEIGHBOR_OPTIONAL: dict[str, tuple[float, float]] = {
    "rsrp": (-157, -44),
    "rsrq": (-34.5, 3.5),
    "eci": (0, 268435455),
    "timeDiff": (-1e9, 1e9),
}
_WIFI_OPTIONAL: dict[str, tuple[float, float]] = {
    "signalStrength": (-128, 0),
    "age": (0, 1e12),
    "channel": (0, 1000),
    "frequency": (0, 1e5),
    "signalToNoiseRatio": (-1000, 1000),
}
_LONGEST_ADVANCE = 20512


def access_points(value: Any) -> list[tuple[str, float | None]]:
    """Return address and level of each access point; the address with colons, in lower case."""
    if isinstance(value, dict):
        value = value.get("accessPoints")
    if not isinstance(value, list) or len(value) > _MOST:
        raise invalid(f"accessPoints is a list of at most {_MOST}")
    found = [_access_point(entry) for entry in value]
    if len(found) < 2:
        raise invalid("at least two access points are needed")
    return found


def cells(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cell objects of a body, whichever lists they stand in."""
    found: list[dict[str, Any]] = []
    for name in CELL_LISTS:
        if name not in body:
            continue
        entries = body[name]
        if not isinstance(entries, list) or not 1 <= len(entries) <= _MOST:
            raise invalid(f"{name} is a list of 1 to {_MOST} cells")
        found += [_cell(entry, name) for entry in entries]
    return found


def cell_of_query(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the cell whose fields stand in a query."""
    found: dict[str, Any] = {}
    for name in ("mcc", "mnc", *_CELL_REQUIRED, *_CELL_OPTIONAL):
        number = number_of_query(query, name)
        if number is not None:
            found[name] = int(number) if number.is_integer() else number
    return _cell(found, "query")


def network(entry: dict[str, Any], where: str) -> None:
    """Check `mcc` and `mnc`: numbers, or texts of digits, whose zeros then count."""
    for name, least in (("mcc", 1), ("mnc", 0)):
        value = entry.get(name)
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if not is_whole(value) or not least <= value <= 999:
            raise invalid(f"{where}.{name} is a number from {least} to 999")


def mac_address(value: Any) -> str:
    """Return a hardware address with colons, in lower case."""
    if not isinstance(value, str) or not _MAC.fullmatch(value):
        raise invalid("macAddress is six pairs of hex digits, parted by colons or hyphens")
    return value.replace("-", ":").lower()


def a_place(body: Mapping[str, Any]) -> tuple[float, float]:
    """Return `lat` and `lon` in degrees; `lng` is taken for `lon`, as devices write it."""
    found = []
    for name, value, most in (
        ("lat", body.get("lat"), 90),
        ("lon", body.get("lon", body.get("lng")), 180),
    ):
        if not _is_number(value) or abs(value) > most:
            raise invalid(f"{name} is a number of at most {most}")
        found.append(float(value))
    return found[0], found[1]


def number_of_query(query: Mapping[str, str], name: str) -> float | None:
    """Return a number of the query, None where it is missing."""
    if name not in query:
        return None
    if not _NUMBER.fullmatch(query[name]):
        raise invalid(f"{name} is a number")
    return float(query[name])


def an_object(value: Any) -> dict[str, Any]:
    """Return the body, which is an object."""
    if not isinstance(value, dict):
        raise bad_request("the body is an object")
    return value


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> TypeGuard[float]:
    """Say whether a value of JSON is a whole number."""
    # In JSON 7.0 is 7 (RFC 8259, 6).
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _access_point(entry: Any) -> tuple[str, float | None]:
    if not isinstance(entry, dict):
        raise invalid("an access point is an object")
    address = mac_address(entry.get("macAddress"))
    if not isinstance(entry.get("ssid", ""), str):
        raise invalid("ssid is text")
    if "channel" in entry and "frequency" in entry:
        raise invalid("channel or frequency, not both")
    _numbers(entry, {}, _WIFI_OPTIONAL, "accessPoints")
    return address, entry.get("signalStrength")


def _cell(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise invalid(f"a cell of {where} is an object")
    network(entry, where)
    _numbers(entry, _CELL_REQUIRED, _CELL_OPTIONAL, where)
    if _LONGEST_ADVANCE < entry.get("adv", 0) < 65535:
        raise invalid(f"{where}.adv is a number from 0 to {_LONGEST_ADVANCE}")
    neighbors = entry.get("nmr", [])
    if not isinstance(neighbors, list) or len(neighbors) > _MOST:
        raise invalid(f"{where}.nmr is a list")
    for neighbor in neighbors:
        if not isinstance(neighbor, dict):
            raise invalid(f"a neighbor of {where} is an object")
        _numbers(neighbor, _NEIGHBOR_REQUIRED, _NEIGHBOR_OPTIONAL, f"{where}.nmr")
    return entry


def _numbers(
    entry: dict[str, Any],
    required: dict[str, tuple[int, int]],
    optional: dict[str, tuple[float, float]],
    where: str,
) -> None:
    for name, (least, most) in {**required, **optional}.items():
        if name not in entry and name not in required:
            continue
        value = entry.get(name)
        if name in required and not is_whole(value):
            raise invalid(f"{where}.{name} is a whole number")
        if not _is_number(value) or not least <= value <= most:
            raise invalid(f"{where}.{name} is a number from {least:g} to {most:g}")
