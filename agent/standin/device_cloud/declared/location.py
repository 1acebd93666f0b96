"""Location: declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import location_input
from agent.standin.device_cloud.assistance import predictions_schema
from agent.standin.device_cloud.declared import shapes

ADDRESS: Schema = {
    "type": "object",
    "required": ["lat", "lon", "uncertainty", "formatted", "address"],
    "properties": {"formatted": shapes.TEXT, "address": shapes.OBJECT},
}
POSITION: Schema = {
    "type": "object",
    "required": ["lat", "lon", "uncertainty"],
    "properties": {
        "lat": {"type": "number"},
        "lon": {"type": "number"},
        "uncertainty": {"type": "number"},
        "fulfilledWith": shapes.TEXT,
        "anchors": {"type": "array", "items": {"type": "object", "required": ["macAddress"]}},
    },
}
_IN_A_QUERY: Schema = {
    **location_input.ASSISTANCE,
    "properties": {
        name: part
        for name, part in location_input.ASSISTANCE["properties"].items()
        if name != "nmr"
    },
}
_NO_REPLY: Schema = {"type": "string", "maxLength": 0}
"""What `doReply=false` leaves of an answer."""


def location(gps_day: int) -> Iterator[Operation]:
    """Yield the operations of location, as they are on a GPS day."""
    current = "/v1/organizations/{organization}/projects/{project}/location/"
    for prefix, security, kind, deprecated in (
        (current, (shapes.ORGANIZATION_TOKEN,), "", False),
        ("/v1/location/", (shapes.JSON_WEB_TOKEN, shapes.EVALUATION_TOKEN), "Legacy", True),
    ):
        yield from _positions(prefix, kind, security=security, deprecated=deprecated)
        yield from _assistance(prefix, kind, security=security, deprecated=deprecated)
        yield from _predictions(gps_day, prefix, kind, security=security, deprecated=deprecated)
    yield shapes.declare(
        "GET /v1/location/history",
        "LocationHistory",
        "Positions that were found.",
        tag="Location",
        parameters=(
            Parameter(name="deviceId", schema=shapes.TEXT),
            Parameter(name="start", schema=shapes.MOMENT),
            Parameter(name="end", schema=shapes.MOMENT),
            *shapes.PAGES,
        ),
        answers={200: shapes.LIST},
    )
    yield from _anchors()
    yield shapes.declare(
        "GET /v1/location/geo",
        "ReverseGeocode",
        "The address of a place.",
        tag="Location",
        security=(shapes.JSON_WEB_TOKEN, shapes.EVALUATION_TOKEN),
        answers={200: ADDRESS},
        parameters=tuple(
            Parameter(
                name=name, schema=location_input.COORDINATES["properties"][name], required=True
            )
            for name in location_input.COORDINATES["required"]
        ),
    )
    yield shapes.declare(
        "POST /v1/location/gnss", "StoreGNSSFix", "Store a position of the device's own.",
        tag="Location", security=(shapes.JSON_WEB_TOKEN, shapes.EVALUATION_TOKEN),
        body=location_input.FIX,
        answers={202: None},
    )  # fmt: skip


def _anchors() -> Iterator[Operation]:
    every, tag = "/v1/location/anchors", "Location"
    yield shapes.declare(
        f"POST {every}", "CreateAnchor", "Tell where an access point is.", tag=tag,
        body=location_input.ANCHOR, refusals=(409,), answers={202: None},
    )  # fmt: skip
    yield shapes.declare(
        f"GET {every}",
        "ListAnchors",
        "The anchors of the team.",
        tag=tag,
        parameters=shapes.PAGES,
        answers={200: shapes.LIST},
    )
    address = (
        Parameter(name="mac_address", schema=location_input.MAC, where="path", required=True),
    )
    yield shapes.declare(
        f"GET {every}/{{mac_address}}",
        "FetchAnchor",
        "One anchor.",
        tag=tag,
        parameters=address,
        answers={200: shapes.WHOLE},
    )
    yield shapes.declare(
        f"PATCH {every}/{{mac_address}}",
        "UpdateAnchor",
        "Move or rename an anchor.",
        tag=tag,
        parameters=address,
        body=location_input.ANCHOR_CHANGE,
        answers={202: None},
    )
    yield shapes.declare(
        f"DELETE {every}/{{mac_address}}",
        "DeleteAnchor",
        "Forget an anchor.",
        tag=tag,
        parameters=address,
        answers={202: None},
    )


def _positions(prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    common = tuple(Parameter(name=name, schema=shapes.FLAG) for name in ("doReply", "hiConf"))
    rough = (*common, Parameter(name="fallback", schema=shapes.FLAG))
    for suffix, name, body, parameters in (
        ("wifi", "WiFi", location_input.WIFI_SCAN, common),
        ("cell", "Cell", location_input.CELL_SCAN, rough),
        (
            "ground-fix",
            "GroundFix",
            location_input.ANY_SCAN,
            (*rough, Parameter(name="alt", schema=shapes.FLAG)),
        ),
    ):
        yield shapes.declare(
            f"POST {prefix}{suffix}", f"{kind}Locate{name}", f"Position by {suffix}.",
            tag="Location", body=body, parameters=parameters, answers={200: POSITION},
            also={"text/plain": _NO_REPLY}, **more,
        )  # fmt: skip
    # A query holds single values only.
    cell = {
        name: schema for name, schema in location_input.CELL["properties"].items() if name != "nmr"
    }
    yield shapes.declare(
        f"GET {prefix}single-cell",
        f"{kind}LocateSingleCell",
        "Position by one cell.",
        tag="Location",
        answers={200: POSITION},
        also={"text/plain": _NO_REPLY},
        parameters=(
            *common,
            *(
                Parameter(name=name, schema=schema, required=name in location_input.NETWORK)
                for name, schema in cell.items()
            ),
        ),
        **{**more, "deprecated": True},
    )


def _assistance(prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    whole: Schema = {"type": "string", "format": "binary"}
    yield shapes.declare(
        f"POST {prefix}agnss",
        f"{kind}FetchAGNSS",
        "A-GNSS data, schema 1.",
        tag="Location",
        body=location_input.ASSISTANCE,
        kind=shapes.BYTES,
        answers={200: whole, 206: whole},
        **more,
    )
    yield shapes.declare(
        f"HEAD {prefix}agnss",
        f"{kind}SizeAGNSS",
        "The size of the data.",
        tag="Location",
        parameters=(Parameter(name="assistance", schema=_IN_A_QUERY),),
        answers={200: None},
        **more,
    )


def _predictions(gps_day: int, prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    wanted = Parameter(name="predictions", schema=predictions_schema(gps_day))
    for suffix in ("pgps", "pgnss"):
        yield shapes.declare(
            f"GET {prefix}{suffix}",
            f"{kind}Fetch{suffix.upper()}",
            "Where the prediction file is.",
            tag="Location",
            parameters=(wanted,),
            answers={200: shapes.OBJECT},
            **more,
        )
