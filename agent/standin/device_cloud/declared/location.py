"""Location: declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.device_cloud.declared.shapes import (
    BYTES,
    EVALUATION_TOKEN,
    JSON_WEB_TOKEN,
    LIST,
    MOMENT,
    OBJECT,
    ORGANIZATION_TOKEN,
    PAGES,
    TEXT,
    WHOLE,
    one,
)
from agent.standin.operation import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.standin.operation import Operation
    from agent.standin.schema import Schema

MAC: Schema = {"type": "string", "pattern": "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$"}
ADDRESS: Schema = {
    "type": "object",
    "required": ["lat", "lon", "uncertainty", "formatted", "address"],
    "properties": {"formatted": TEXT, "address": OBJECT},
}
FIX: Schema = {
    "type": "object",
    "required": ["lat", "lon", "uncertainty"],
    "properties": {
        "lat": {"type": "number"},
        "lon": {"type": "number"},
        "uncertainty": {"type": "number"},
        "fulfilledWith": TEXT,
        "anchors": {"type": "array", "items": {"type": "object", "required": ["macAddress"]}},
    },
}
CELL: Schema = {
    "type": "object",
    "required": ["mcc", "mnc", "eci", "tac"],
    "properties": {
        "mcc": {"type": "integer", "minimum": 1, "maximum": 999},
        "mnc": {"type": "integer", "minimum": 0, "maximum": 999},
        "eci": {"type": "integer", "minimum": 0, "maximum": 268435455},
        "tac": {"type": "integer", "minimum": 0, "maximum": 65535},
    },
}
_NO_REPLY: Schema = {"type": "string", "maxLength": 0}
"""What `doReply=false` leaves of an answer."""
# Of the made-up radio world: these are found, where others may be answered with 404.
_HEARD_CELL = {"mcc": 1, "mnc": 1, "eci": 33703681, "tac": 2305, "rsrp": -97}
_HEARD_POINTS = {
    "accessPoints": [
        {"macAddress": "40:01:7a:00:00:e3", "signalStrength": -61},
        {"macAddress": "40:01:7a:00:01:67", "signalStrength": -70},
    ]
}
CELLS: Schema = {"type": "array", "items": CELL, "minItems": 1, "maxItems": 1000}
SCAN: Schema = {
    "examples": [_HEARD_POINTS],
    "type": "object",
    "required": ["accessPoints"],
    "properties": {
        "accessPoints": {
            "type": "array",
            "minItems": 2,
            "maxItems": 1000,
            "items": {
                "type": "object",
                "required": ["macAddress"],
                "properties": {
                    "macAddress": MAC,
                    "signalStrength": {"type": "integer", "minimum": -128, "maximum": 0},
                },
            },
        }
    },
}


def location() -> Iterator[Operation]:
    """Yield the operations of location."""
    current = "/v1/organizations/{organization}/projects/{project}/location/"
    for prefix, security, kind, deprecated in (
        (current, (ORGANIZATION_TOKEN,), "", False),
        ("/v1/location/", (JSON_WEB_TOKEN, EVALUATION_TOKEN), "Legacy", True),
    ):
        yield from _positions(prefix, kind, security=security, deprecated=deprecated)
        yield from _assistance(prefix, kind, security=security, deprecated=deprecated)
    yield one(
        "GET /v1/location/history",
        "LocationHistory",
        "Positions that were found.",
        tag="Location",
        parameters=(
            Parameter(name="deviceId", schema=TEXT),
            Parameter(name="start", schema=MOMENT),
            Parameter(name="end", schema=MOMENT),
            *PAGES,
        ),
        answers={200: LIST},
    )
    lat: Schema = {"type": "number", "minimum": -90, "maximum": 90}
    lon: Schema = {"type": "number", "minimum": -180, "maximum": 180}
    yield from _anchors(lat, lon)
    yield one(
        "GET /v1/location/geo", "ReverseGeocode", "The address of a place.", tag="Location",
        security=(JSON_WEB_TOKEN, EVALUATION_TOKEN), answers={200: ADDRESS},
        parameters=(
            Parameter(name="lat", schema={**lat, "examples": [63.42]}, required=True),
            Parameter(name="lon", schema={**lon, "examples": [10.38]}, required=True),
        ),
    )  # fmt: skip
    yield one(
        "POST /v1/location/gnss", "StoreGNSSFix", "Store a position of the device's own.",
        tag="Location", security=(JSON_WEB_TOKEN, EVALUATION_TOKEN),
        body={
            "type": "object",
            "required": ["lat", "lon"],
            "properties": {"lat": lat, "lon": lon},
        },
        answers={202: None},
    )  # fmt: skip


def _anchors(lat: Schema, lon: Schema) -> Iterator[Operation]:
    every, tag = "/v1/location/anchors", "Location"
    name: Schema = {"type": "string", "maxLength": 32}
    known = {"lat": lat, "lon": lon, "name": name}
    whole = {"macAddress": MAC, **known}
    yield one(
        f"POST {every}", "CreateAnchor", "Tell where an access point is.", tag=tag,
        body={"type": "object", "required": ["macAddress", "lat", "lon"], "properties": whole},
        answers={202: None},
    )  # fmt: skip
    yield one(f"GET {every}", "ListAnchors", "The anchors of the team.", tag=tag,
              parameters=PAGES, answers={200: LIST})  # fmt: skip
    address = (Parameter(name="mac_address", schema=MAC, where="path", required=True),)
    yield one(f"GET {every}/{{mac_address}}", "FetchAnchor", "One anchor.", tag=tag,
              parameters=address, answers={200: WHOLE})  # fmt: skip
    yield one(f"PATCH {every}/{{mac_address}}", "UpdateAnchor", "Move or rename an anchor.",
              tag=tag, parameters=address, body={"type": "object", "properties": known},
              answers={202: None})  # fmt: skip
    yield one(f"DELETE {every}/{{mac_address}}", "DeleteAnchor", "Forget an anchor.", tag=tag,
              parameters=address, answers={202: None})  # fmt: skip


def _positions(prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    flag: Schema = {"type": "boolean"}
    common = tuple(Parameter(name=name, schema=flag) for name in ("doReply", "hiConf"))
    rough = (*common, Parameter(name="fallback", schema=flag))
    kinds = dict.fromkeys(("lte", "ltecatm", "nbiot"), CELLS)
    one_kind: Schema = {
        "type": "object",
        "oneOf": [{"required": [name]} for name in kinds],
        "properties": kinds,
        "examples": [{"lte": [_HEARD_CELL]}],
    }
    any_kind: Schema = {
        "type": "object",
        "anyOf": [{"required": [name]} for name in (*kinds, "wifi")],
        "properties": {**kinds, "wifi": SCAN},
        "examples": [{"lte": [_HEARD_CELL], "wifi": _HEARD_POINTS}],
    }
    for suffix, name, body, parameters in (
        ("wifi", "WiFi", SCAN, common),
        ("cell", "Cell", one_kind, rough),
        ("ground-fix", "GroundFix", any_kind, (*rough, Parameter(name="alt", schema=flag))),
    ):
        yield one(
            f"POST {prefix}{suffix}", f"{kind}Locate{name}", f"Position by {suffix}.",
            tag="Location", body=body, parameters=parameters, answers={200: FIX},
            also={"text/plain": _NO_REPLY}, **more,
        )  # fmt: skip
    number: Schema = {"type": "number", "minimum": -157, "maximum": -44}
    yield one(
        f"GET {prefix}single-cell", f"{kind}LocateSingleCell", "Position by one cell.",
        tag="Location", answers={200: FIX}, also={"text/plain": _NO_REPLY},
        parameters=(
            *(
                Parameter(name=name, schema=schema, required=True)
                for name, schema in CELL["properties"].items()
            ),
            Parameter(name="rsrp", schema=number),
        ),
        **{**more, "deprecated": True},
    )  # fmt: skip


def _assistance(prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    whole: Schema = {"type": "string", "format": "binary"}
    types: Schema = {
        "type": "array",
        "minItems": 1,
        "maxItems": 17,
        "items": {"type": "integer", "minimum": 1, "maximum": 17, "not": {"const": 8}},
    }
    yield one(
        f"POST {prefix}agnss",
        f"{kind}FetchAGNSS",
        "A-GNSS data, schema 1.",
        tag="Location",
        body={"type": "object", "properties": {"types": types}},
        kind=BYTES,
        answers={200: whole, 206: whole},
        **more,
    )
    yield one(
        f"HEAD {prefix}agnss",
        f"{kind}SizeAGNSS",
        "The size of the data.",
        tag="Location",
        parameters=(Parameter(name="types", schema=types),),
        answers={200: None},
        **more,
    )
    for suffix in ("pgps", "pgnss"):
        yield one(
            f"GET {prefix}{suffix}", f"{kind}Fetch{suffix.upper()}",
            "Where the prediction file is.", tag="Location",
            parameters=(
                Parameter(
                    name="predictionCount",
                    schema={"type": "integer", "minimum": 1, "maximum": 168},
                ),
                Parameter(
                    name="predictionIntervalMinutes",
                    schema={"type": "integer", "enum": [120, 180, 240, 300, 360, 420, 480]},
                ),
            ),
            answers={200: OBJECT}, **more,
        )  # fmt: skip
