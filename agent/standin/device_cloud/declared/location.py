"""Location: declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.assistance import predictions_schema
from agent.standin.device_cloud.declared.shapes import (
    BYTES,
    EVALUATION_TOKEN,
    FLAG,
    JSON_WEB_TOKEN,
    LIST,
    MOMENT,
    OBJECT,
    ORGANIZATION_TOKEN,
    PAGES,
    TEXT,
    WHOLE,
    declare,
)
from agent.standin.device_cloud.location_input import (
    ANCHOR,
    ANCHOR_CHANGE,
    ANY_SCAN,
    ASSISTANCE,
    CELL,
    CELL_SCAN,
    COORDINATES,
    FIX,
    MAC,
    NETWORK,
    WIFI_SCAN,
)

ADDRESS: Schema = {
    "type": "object",
    "required": ["lat", "lon", "uncertainty", "formatted", "address"],
    "properties": {"formatted": TEXT, "address": OBJECT},
}
POSITION: Schema = {
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
_IN_A_QUERY: Schema = {
    **ASSISTANCE,
    "properties": {name: part for name, part in ASSISTANCE["properties"].items() if name != "nmr"},
}
_NO_REPLY: Schema = {"type": "string", "maxLength": 0}
"""What `doReply=false` leaves of an answer."""


def location(gps_day: int) -> Iterator[Operation]:
    """Yield the operations of location, as they are on a GPS day."""
    current = "/v1/organizations/{organization}/projects/{project}/location/"
    for prefix, security, kind, deprecated in (
        (current, (ORGANIZATION_TOKEN,), "", False),
        ("/v1/location/", (JSON_WEB_TOKEN, EVALUATION_TOKEN), "Legacy", True),
    ):
        yield from _positions(prefix, kind, security=security, deprecated=deprecated)
        yield from _assistance(prefix, kind, security=security, deprecated=deprecated)
        yield from _predictions(gps_day, prefix, kind, security=security, deprecated=deprecated)
    yield declare(
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
    yield from _anchors()
    yield declare(
        "GET /v1/location/geo", "ReverseGeocode", "The address of a place.", tag="Location",
        security=(JSON_WEB_TOKEN, EVALUATION_TOKEN), answers={200: ADDRESS},
        parameters=tuple(
            Parameter(name=name, schema=COORDINATES["properties"][name], required=True)
            for name in COORDINATES["required"]
        ),
    )  # fmt: skip
    yield declare(
        "POST /v1/location/gnss", "StoreGNSSFix", "Store a position of the device's own.",
        tag="Location", security=(JSON_WEB_TOKEN, EVALUATION_TOKEN),
        body=FIX,
        answers={202: None},
    )  # fmt: skip


def _anchors() -> Iterator[Operation]:
    every, tag = "/v1/location/anchors", "Location"
    yield declare(
        f"POST {every}", "CreateAnchor", "Tell where an access point is.", tag=tag,
        body=ANCHOR, refusals=(409,), answers={202: None},
    )  # fmt: skip
    yield declare(f"GET {every}", "ListAnchors", "The anchors of the team.", tag=tag,
              parameters=PAGES, answers={200: LIST})  # fmt: skip
    address = (Parameter(name="mac_address", schema=MAC, where="path", required=True),)
    yield declare(f"GET {every}/{{mac_address}}", "FetchAnchor", "One anchor.", tag=tag,
              parameters=address, answers={200: WHOLE})  # fmt: skip
    yield declare(f"PATCH {every}/{{mac_address}}", "UpdateAnchor", "Move or rename an anchor.",
              tag=tag, parameters=address, body=ANCHOR_CHANGE, answers={202: None})  # fmt: skip
    yield declare(f"DELETE {every}/{{mac_address}}", "DeleteAnchor", "Forget an anchor.", tag=tag,
              parameters=address, answers={202: None})  # fmt: skip


def _positions(prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    common = tuple(Parameter(name=name, schema=FLAG) for name in ("doReply", "hiConf"))
    rough = (*common, Parameter(name="fallback", schema=FLAG))
    for suffix, name, body, parameters in (
        ("wifi", "WiFi", WIFI_SCAN, common),
        ("cell", "Cell", CELL_SCAN, rough),
        ("ground-fix", "GroundFix", ANY_SCAN, (*rough, Parameter(name="alt", schema=FLAG))),
    ):
        yield declare(
            f"POST {prefix}{suffix}", f"{kind}Locate{name}", f"Position by {suffix}.",
            tag="Location", body=body, parameters=parameters, answers={200: POSITION},
            also={"text/plain": _NO_REPLY}, **more,
        )  # fmt: skip
    # A query holds single values only.
    cell = {name: schema for name, schema in CELL["properties"].items() if name != "nmr"}
    yield declare(
        f"GET {prefix}single-cell", f"{kind}LocateSingleCell", "Position by one cell.",
        tag="Location", answers={200: POSITION}, also={"text/plain": _NO_REPLY},
        parameters=(
            *common,
            *(
                Parameter(name=name, schema=schema, required=name in NETWORK)
                for name, schema in cell.items()
            ),
        ),
        **{**more, "deprecated": True},
    )  # fmt: skip


def _assistance(prefix: str, kind: str, **more: Any) -> Iterator[Operation]:
    whole: Schema = {"type": "string", "format": "binary"}
    yield declare(
        f"POST {prefix}agnss",
        f"{kind}FetchAGNSS",
        "A-GNSS data, schema 1.",
        tag="Location",
        body=ASSISTANCE,
        kind=BYTES,
        answers={200: whole, 206: whole},
        **more,
    )
    yield declare(
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
        yield declare(
            f"GET {prefix}{suffix}",
            f"{kind}Fetch{suffix.upper()}",
            "Where the prediction file is.",
            tag="Location",
            parameters=(wanted,),
            answers={200: OBJECT},
            **more,
        )
