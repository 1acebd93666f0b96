"""A-GNSS and P-GPS: requests, and the binary files of the documented formats (clause D8.2)."""

import math
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from starlette.responses import Response

from agent.standin.core.operation import Parameter, in_query
from agent.standin.core.responses import JSON, file_response
from agent.standin.core.schema import OBJECT, TEXT, Schema, object_schema
from agent.standin.device_cloud.access import LEGACY_LOCATION, AcceptedSchemes
from agent.standin.device_cloud.location import location_input, orbits
from agent.standin.device_cloud.location.radio_world import Fix, ReportedCell, radio_world
from agent.standin.device_cloud.operations import BYTES, Context, DeviceCloudOperation, declare
from agent.standin.device_cloud.refusals import DeviceCloudRefused
from agent.standin.device_cloud.tables import PREDICTIONS

DEFAULT_TYPES = (1, 2, 3, 4, 6, 7, 9)
_MOST_VISIBLE = 16
_QZSS = range(193, 197)
_GALILEO = range(1, 25)
_EPHEMERIDES = frozenset({2, 12, 15})
_ISSUED_EVERY_S = 7200
"""How often satellites send a new ephemeris."""
_BLOCK = struct.Struct("<BH")
_FURTHER_ON = re.compile(r"bytes=0*[1-9]")
_MAX_CACHED = 100
"""Files whose further pieces may still be fetched."""
PREDICTION_BYTES = 2006
_HEADER = struct.Struct("<BBHHHHhi")
_DAYS_AHEAD = 14
_INTERVAL = 240
"""Minutes between two predictions where the request names no interval."""
_PREDICTED_EVERY_S = 7200
"""A file without a start begins at the next such time: its first prediction holds 2 h before it."""


class _Cached(dict[tuple[object, bytes], bytes]):
    """Files by who asked for what."""


async def _agnss(context: Context) -> Response:
    """Answer with what the body asks for, or with the range of it that is requested."""
    return _send(context, context.body)


async def _agnss_by_query(context: Context) -> Response:
    """Answer as to a POST for the element types that the older names stand for."""
    return _send(context, _by_older_names(context.query["assistance"]))


def _by_older_names(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an older query with the element types that its names stand for."""
    types = {
        "custom": options.get("customTypes"),
        "rtLocation": [8],
        "rtAssistance": [*DEFAULT_TYPES, *([8] if "eci" in options else [])],
    }
    return {**options, "types": types[options.get("requestType", "rtAssistance")]}


def _send(context: Context, options: object) -> Response:
    """Return the answer with the file, or with the range of it that is requested."""
    cloud = context.cloud
    cached = cloud.transient(_Cached, _Cached)
    key = (context.principal, msgspec.json.encode(options, order="sorted"))
    # The data changes with time: later ranges are of the same file as the first one.
    further = _FURTHER_ON.match(context.headers.get("range", ""))
    file = cached.pop(key, None) if further else None
    cached[key] = file or _agnss_file(options, cloud.clock.time())
    if len(cached) > _MAX_CACHED:
        del cached[next(iter(cached))]
    return file_response(cached[key], context.headers, DeviceCloudRefused)


async def _agnss_size(context: Context) -> Response:
    """Answer with the size only; the fields are in the query or in a body."""
    options = context.json_body if context.raw else context.query["assistance"]
    if not context.raw and "requestType" in options:
        options = _by_older_names(options)
    file = _agnss_file(options, context.cloud.clock.time())
    return file_response(file, {}, DeviceCloudRefused)


class _Wanted(msgspec.Struct):
    """What of the data a request asks for; with `eci` it also names a cell."""

    eci: float | None = None
    mask: float = 5
    filtered: bool = False
    types: tuple[float, ...] = DEFAULT_TYPES


def _agnss_file(options: object, now_s: float) -> bytes:
    """Return the file: version 1, then a block for each type that there is data for."""
    wanted = msgspec.convert(options, _Wanted)
    at = orbits.gps_seconds(now_s)
    issued = at - at % _ISSUED_EVERY_S
    place = None
    if wanted.eci is not None:
        cell = msgspec.convert(options, ReportedCell)
        place = radio_world().by_cells([cell], fallback=True)
    satellites = list(range(1, orbits.SATELLITES + 1))
    if wanted.filtered and place is not None:
        heights = {s: orbits.elevation_deg(s, at, place.lat, place.lon) for s in satellites}
        seen = [s for s in satellites if heights[s] >= wanted.mask]
        satellites = sorted(sorted(seen, key=lambda s: -heights[s])[:_MOST_VISIBLE])
    file = b"\x01"
    # In ascending order: the times of the satellites (6) come before the clock (7).
    for kind in sorted(set(map(int, wanted.types))):
        if kind == 8:
            elements = [_location(place)] if place is not None else []
        elif kind in _ELEMENTS:
            elements = _ELEMENTS[kind](satellites, issued if kind in _EPHEMERIDES else at)
        else:
            elements = []
        if elements:
            file += _BLOCK.pack(kind, len(elements)) + b"".join(elements)
    return file


def _utc(_satellites: list[int], at: float) -> list[bytes]:
    week = int(at // orbits.WEEK_S)
    return [
        struct.pack("<iiBBbBbb", 0, 0, 0, week % 256, orbits.LEAP_S, week % 256, 7, orbits.LEAP_S)
    ]


def _clock(_satellites: list[int], at: float) -> list[bytes]:
    day, second = divmod(at, orbits.DAY_S)
    return [struct.pack("<HIHII", int(day), int(second), int(second % 1 * 1000), 0xFFFFFFFF, 0)]


_ELEMENTS: dict[int, Callable[[list[int], float], list[bytes]]] = {
    1: _utc,
    2: lambda satellites, at: [orbits.ephemeris(s, at) for s in satellites],
    3: lambda satellites, at: [orbits.almanac(s, at) for s in satellites],
    4: lambda _, __: [struct.pack("<8b", 11, 1, -1, -1, 43, 2, -2, -3)],
    5: lambda _, __: [struct.pack("<hhhBB", 160, 40, 10, 0, 1)],
    6: lambda satellites, _: [struct.pack("<BHB", s, 0x22C0 + s, 1) for s in satellites],
    7: _clock,
    9: lambda _, __: [struct.pack("<I", 0)],
    11: lambda _, at: [orbits.almanac(s, at) for s in _QZSS],
    12: lambda _, at: [orbits.ephemeris(s, at) for s in _QZSS],
    13: lambda _, __: [struct.pack("<I", 0)],
    14: lambda _, at: [orbits.galileo_almanac(s, at) for s in _GALILEO],
    15: lambda _, at: [orbits.galileo_ephemeris(s, at) for s in _GALILEO],
    16: lambda _, at: [struct.pack("<hhHH", 0, 0, 0, int(at // orbits.WEEK_S) % 64)],
    17: lambda _, __: [struct.pack("<Q", 0)],
}


def _location(place: Fix) -> bytes:
    """Return the 15 bytes of a position: scales of A-GNSS type 8 in nrf_cloud_agnss_schema_v1.h."""
    steps = math.ceil(math.log(place.uncertainty_m / 10 + 1) / math.log(1.1))
    radius = max(0, min(127, steps))
    lat = max(-(2**23), min(2**23 - 1, round(place.lat * 2**23 / 90)))
    lon = max(-(2**23), min(2**23 - 1, round(place.lon * 2**24 / 360)))
    return struct.pack("<iihBBBBB", lat, lon, 0, radius, radius, 0, 255, 68)


async def _pgps(context: Context) -> Response:
    """Answer with where the prediction file is."""
    cloud, options = context.cloud, context.query["predictions"]
    now = orbits.gps_seconds(cloud.clock.time())
    interval = options.get("predictionIntervalMinutes", _INTERVAL)
    count = options.get("predictionCount", 42)
    begin = now + -now % _PREDICTED_EVERY_S
    day = options.get("startGpsDay", int(begin // orbits.DAY_S))
    default_second = 0 if "startGpsDay" in options else int(begin % orbits.DAY_S)
    second = options.get("startGpsTimeOfDaySeconds", default_second)
    last = day * orbits.DAY_S + second + (count - 1) * interval * 60
    last_day, last_second = divmod(last, orbits.DAY_S)
    path = f"public/{day}-{second}_{last_day}-{last_second}.bin"
    cloud.table(PREDICTIONS).put(path, (day, second, count, interval))
    return JSON({"host": cloud.urls["downloads"], "path": path})


def predictions_schema(now_s: float) -> Schema:
    """Return the schema of a request at a Unix time: no prediction is over 14 days ahead."""
    today = int(orbits.gps_seconds(now_s) // orbits.DAY_S)
    intervals = range(120, 481, 60)
    count: Schema = {"type": "integer", "minimum": 1}
    fields: Schema = {
        "predictionIntervalMinutes": {"type": "integer", "enum": [*intervals]},
        "predictionCount": {**count, "maximum": _most_predictions(intervals[0])},
        "startGpsDay": {"type": "integer", "minimum": 0, "maximum": today + _DAYS_AHEAD},
        "startGpsTimeOfDaySeconds": {"type": "integer", "minimum": 0, "maximum": orbits.DAY_S - 1},
    }
    by_interval: list[Schema] = [
        {
            "required": ["predictionIntervalMinutes"],
            "properties": {
                "predictionIntervalMinutes": {"enum": [interval]},
                "predictionCount": {**count, "maximum": _most_predictions(interval)},
            },
        }
        for interval in intervals
    ]
    default_interval: Schema = {
        "not": {"required": ["predictionIntervalMinutes"]},
        "properties": {"predictionCount": {**count, "maximum": _most_predictions(_INTERVAL)}},
    }
    return {"type": "object", "properties": fields, "anyOf": [*by_interval, default_interval]}


def _most_predictions(interval: int) -> int:
    return _DAYS_AHEAD * 1440 // interval


@lru_cache(maxsize=8)
def predictions(day: int, second: int, count: int, interval_min: int) -> bytes:
    """Return a prediction file: a header, then a clock and 32 ephemerides for each step."""
    parts = [_HEADER.pack(1, 10, 1, count, PREDICTION_BYTES, interval_min, day, second)]
    for step in range(count):
        at = day * orbits.DAY_S + second + step * interval_min * 60
        its_day, its_second = divmod(at, orbits.DAY_S)
        parts.append(_BLOCK.pack(7, 1) + struct.pack("<HIHII", its_day, its_second, 0, 0, 0))
        parts.append(_BLOCK.pack(2, orbits.SATELLITES))
        parts += [orbits.ephemeris(s, at) for s in range(1, orbits.SATELLITES + 1)]
    return b"".join(parts)


_IN_A_QUERY: Schema = {
    **location_input.ASSISTANCE,
    "properties": {
        name: part
        for name, part in location_input.ASSISTANCE["properties"].items()
        if name != "nmr"
    },
}
_FILE: Schema = {"type": "string", "format": "binary"}
_NETWORK = list(location_input.NETWORK)


def _older_form(kind: str, *required: str, **properties: Schema) -> Schema:
    """Return the schema of a query by GET for one `requestType`; its location needs a cell."""
    types: Schema = {"requestType": {"type": "string", "enum": [kind]}, **properties}
    return {"required": list(required), "properties": types}


_NO_CELL: Schema = {"not": {"required": ["eci"]}}
_ASKED = ("requestType", "customTypes")
_IN_THE_OLDER_QUERY: Schema = {
    "type": "object",
    "properties": {
        "requestType": {"type": "string", "enum": ["rtAssistance", "rtLocation", "custom"]},
        "customTypes": location_input.ASSISTANCE["properties"]["types"],
        **location_input.NETWORK,
    },
    "anyOf": [
        _older_form("rtAssistance", *_NETWORK),
        {**_older_form("rtAssistance"), **_NO_CELL},
        _older_form("rtLocation", "requestType", *_NETWORK),
        _older_form("custom", *_ASKED, *_NETWORK),
        {
            **_older_form("custom", *_ASKED, customTypes={"items": {"not": {"enum": [8]}}}),
            **_NO_CELL,
        },
    ],
}


# Of the older path alone: the size of what a GET gets, or a POST with the same fields.
_IN_EITHER_QUERY: Schema = {
    **_IN_A_QUERY,
    "properties": {**_IN_THE_OLDER_QUERY["properties"], **_IN_A_QUERY["properties"]},
    "anyOf": [
        {"required": ["requestType"], "anyOf": _IN_THE_OLDER_QUERY["anyOf"]},
        {"not": {"required": ["requestType"]}, "anyOf": _IN_A_QUERY["anyOf"]},
    ],
}


def operations(
    prefix: str, kind: str, access: AcceptedSchemes, *, deprecated: bool
) -> tuple[DeviceCloudOperation, ...]:
    """Return the operations of one form of the path."""
    wanted = Parameter(name="predictions", schema=OBJECT, on_day=predictions_schema)
    return (
        declare(
            f"POST {prefix}agnss", f"{kind}FetchAGNSS", "A-GNSS data, schema 1.", _agnss,
            tag="Location", access=access, body=location_input.ASSISTANCE, answered_as=BYTES,
            answers={200: _FILE, 206: _FILE}, deprecated=deprecated,
        ),
        declare(
            f"HEAD {prefix}agnss", f"{kind}SizeAGNSS", "The size of the data.", _agnss_size,
            tag="Location", access=access, body=location_input.ASSISTANCE, body_required=False,
            own_body=True,
            parameters=in_query(assistance=_IN_EITHER_QUERY if deprecated else _IN_A_QUERY),
            answers={200: None}, deprecated=deprecated,
        ),
        *(
            declare(
                f"GET {prefix}{suffix}", f"{kind}Fetch{suffix.upper()}",
                "Where the prediction file is.", _pgps, tag="Location", access=access,
                parameters=(wanted,), answers={200: object_schema(host=TEXT, path=TEXT)},
                deprecated=deprecated,
            )
            for suffix in ("pgps", "pgnss")
        ),
    )  # fmt: skip


# After the HEAD of its path: Starlette answers HEAD wherever there is GET.
OLDER_AGNSS = declare(
    "GET /v1/location/agnss", "LegacyQueryAGNSS", "A-GNSS data; POST replaces it.",
    _agnss_by_query, tag="Location", access=LEGACY_LOCATION, answered_as=BYTES,
    parameters=in_query(assistance=_IN_THE_OLDER_QUERY),
    answers={200: _FILE, 206: _FILE}, deprecated=True,
)  # fmt: skip
