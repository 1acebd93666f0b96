"""Schemas of location requests, for the handlers and the document alike.

Other values than those named here are accepted and ignored.
"""

from collections.abc import Mapping

import msgspec

from agent.json_value import JSONValue
from agent.standin.core.schema import Schema, body_schema, object_schema
from agent.standin.device_cloud.location.radio_world import ReportedCell

CELL_LISTS = ("lte", "ltecatm", "nbiot")
_MOST = 1000


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _number(least: float, most: float) -> Schema:
    return {"type": "number", "minimum": least, "maximum": most}


_EARFCN, _PCI, _ECI = _whole(0, 262143), _whole(0, 503), _whole(0, 268435455)
_LEVELS = {"rsrp": _number(-157, -44), "rsrq": _number(-34.5, 3.5)}
_NEIGHBOR = body_schema(
    "earfcn", "pci",
    earfcn=_EARFCN, pci=_PCI, eci=_ECI, timeDiff=_number(-1e9, 1e9), **_LEVELS,
)  # fmt: skip
# A text keeps the zeros of a network code.
NETWORK: Schema = {
    "mcc": {
        "anyOf": [
            _whole(1, 999),
            {"type": "string", "pattern": "^(0{0,2}[1-9]|0?[1-9][0-9]|[1-9][0-9]{2})$"},
        ]
    },
    "mnc": {"anyOf": [_whole(0, 999), {"type": "string", "pattern": "^[0-9]{1,3}$"}]},
    "eci": _ECI,
    "tac": _whole(0, 65535),
}
CELL = body_schema(
    *NETWORK,
    **NETWORK,
    **_LEVELS,
    pci=_PCI,
    earfcn=_EARFCN,
    # 65535: not known.
    adv={"anyOf": [_whole(0, 20512), {"enum": [65535]}]},
    nmr={"type": "array", "maxItems": _MOST, "items": _NEIGHBOR},
)
CELLS: Schema = {"type": "array", "items": CELL, "minItems": 1, "maxItems": _MOST}
MAC: Schema = {"type": "string", "pattern": "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$"}
ACCESS_POINT: Schema = {
    "type": "object",
    "required": ["macAddress", "signalStrength"],
    "not": {"required": ["channel", "frequency"]},
    "properties": {
        "macAddress": {"type": "string", "pattern": "^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"},
        "ssid": {"type": "string"},
        "signalStrength": _whole(-128, -1),
        "age": _number(0, 1e12),
        "channel": _number(0, 1000),
        "frequency": _number(0, 1e5),
        "signalToNoiseRatio": _number(-1000, 1000),
    },
}
ACCESS_POINTS: Schema = {"type": "array", "minItems": 2, "maxItems": _MOST, "items": ACCESS_POINT}
# From the made-up radio world, so these have a position.
_EXAMPLE_CELL = {"mcc": 1, "mnc": 1, "eci": 33703681, "tac": 2305, "rsrp": -97}
_EXAMPLE_WIFI_SCAN = {
    "accessPoints": [
        {"macAddress": "40:01:7a:00:00:e3", "signalStrength": -61},
        {"macAddress": "40:01:7a:00:01:67", "signalStrength": -70},
    ]
}
WIFI_SCAN: Schema = {**object_schema(accessPoints=ACCESS_POINTS), "examples": [_EXAMPLE_WIFI_SCAN]}
_LISTS = dict.fromkeys(CELL_LISTS, CELLS)
CELL_SCAN: Schema = {
    "type": "object",
    "oneOf": [{"required": [name]} for name in CELL_LISTS],
    "properties": _LISTS,
    "examples": [{"lte": [_EXAMPLE_CELL]}],
}
ANY_SCAN: Schema = {
    "type": "object",
    "anyOf": [{"required": [name]} for name in (*CELL_LISTS, "wifi")],
    "properties": {**_LISTS, "wifi": {"anyOf": [WIFI_SCAN, ACCESS_POINTS]}},
    "examples": [{"lte": [_EXAMPLE_CELL], "wifi": _EXAMPLE_WIFI_SCAN}],
}
ASSISTANCE: Schema = {
    **body_schema(
        types={"type": "array", "minItems": 1, "maxItems": 17, "items": _whole(1, 17)},
        mask=_number(0, 90),
        filtered={"type": "boolean"},
        **CELL["properties"],
    ),
    # Type 8 and the filter need a cell, and all of its fields.
    "anyOf": [
        {"required": list(NETWORK)},
        {
            "not": {"required": ["eci"]},
            "properties": {
                "types": {"items": {"not": {"enum": [8]}}},
                "filtered": {"not": {"enum": [True]}},
            },
        },
    ],
}
COORDINATES = object_schema(
    lat={**_number(-90, 90), "examples": [63.42]}, lon={**_number(-180, 180), "examples": [10.38]}
)
FIX: Schema = {
    "type": "object",
    "required": ["lat"],
    # Devices use either name.
    "anyOf": [{"required": ["lon"]}, {"required": ["lng"]}],
    "properties": {
        **COORDINATES["properties"],
        "lng": COORDINATES["properties"]["lon"],
        "acc": _number(0, 1e9),
    },
}
ANCHOR_CHANGE = body_schema(**COORDINATES["properties"], name={"type": "string", "maxLength": 32})
ANCHOR = object_schema("name", macAddress=MAC, **ANCHOR_CHANGE["properties"])


class _ReportedAccessPoint(msgspec.Struct, rename="camel"):
    mac_address: str
    signal_strength: float


def access_points(body: JSONValue) -> list[tuple[str, float]]:
    """Return address, in lower case, and level of each access point."""
    listed = body["accessPoints"] if isinstance(body, dict) else body
    points = msgspec.convert(listed, list[_ReportedAccessPoint])
    return [(mac_address(point.mac_address), point.signal_strength) for point in points]


def mac_address(text: str) -> str:
    """Return a hardware address with colons, in lower case."""
    return text.replace("-", ":").lower()


def cells(body: Mapping[str, JSONValue]) -> list[ReportedCell]:
    """Return the cells of a body, whichever lists they stand in."""
    listed = [msgspec.convert(body.get(name, []), list[ReportedCell]) for name in CELL_LISTS]
    return [cell for found in listed for cell in found]
