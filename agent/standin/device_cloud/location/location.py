"""The location endpoints, in the organization form and the legacy form (clauses D8, D10.6, D10.7).

A handler serves both prefixes; each prefix has its own credentials.
"""

import math
import uuid
from collections.abc import Mapping, Sequence

import msgspec
from starlette.responses import PlainTextResponse, Response

from agent.standin.clock import iso
from agent.standin.core.operation import Parameter, in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, TEXT, Schema, object_schema, texts
from agent.standin.device_cloud.access import LEGACY_LOCATION, PROJECT_LOCATION, AcceptedSchemes
from agent.standin.device_cloud.location import anchors, assistance, location_input
from agent.standin.device_cloud.location.radio_world import TOWN_M, Fix, ReportedCell, radio_world
from agent.standin.device_cloud.operations import Context, DeviceCloudOperation, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import DeviceCloudRefused, not_found
from agent.standin.device_cloud.resource import accepted, with_meta
from agent.standin.device_cloud.shapes import FLAG, ID, list_of, resource
from agent.standin.device_cloud.tables import FIXES, StoredFix
from agent.standin.principal import CredentialKind

NINETY_FIVE_PERCENT = 1.62
"""From the radius that holds 68 % to the one that holds 95 %, errors being normal both ways."""
_MOST_FIXES = 10_000
_LARGEST_FIX = 16 * 1024
"""Bytes: what a device sends beyond the position is kept with it."""
_POSITION_OF_A_FIX = frozenset({"lat", "lon", "lng", "acc"})
_IN_HISTORY = frozenset(
    {"ANCHOR", "GNSS", "MCELL", "MCELL_EVAL", "SCELL", "SCELL_EVAL", "WIFI", "WIFI_EVAL"}
)
"""The words that released clients take for how a position in the history was found."""


async def _history(context: Context) -> Response:
    query = context.query
    device = query.get("deviceId")
    since, until = query.get("start", 0.0), query.get("end", float("inf"))
    rows = (
        row.fix
        for row in context.owned(FIXES).values()
        if device in {None, row.fix["deviceId"]} and since <= row.at < until
    )
    return context.page(descending=True).answer(rows)


async def _store_fix(context: Context) -> Response:
    body = context.body
    lon = body["lon"] if "lon" in body else body["lng"]
    fix = Fix(float(body["lat"]), float(lon), float(body.get("acc", 10)), "GNSS")
    meta = {name: value for name, value in body.items() if name not in _POSITION_OF_A_FIX}
    _record_fix(context, fix, {"meta": meta})
    return accepted()


async def _geocode(context: Context) -> Response:
    lat, lon = float(context.query["lat"]), float(context.query["lon"])
    address = radio_world().address(lat, lon)
    if address is None:
        raise not_found("no address is known there")
    formatted = ", ".join(address[name] for name in ("city", "state", "country"))
    resource = {"lat": lat, "lon": lon, "uncertainty": TOWN_M, "formatted": formatted}
    return JSON({**resource, "address": address})


async def _wifi(context: Context) -> Response:
    points = location_input.access_points(context.body)
    fix, known = anchors.strongest_anchor(context.cloud, context.team, points)
    return _answer(context, fix or radio_world().by_wifi(points), known)


async def _cell(context: Context) -> Response:
    found = location_input.cells(context.body)
    fix = radio_world().by_cells(found, fallback=context.query.get("fallback", True))
    return _answer(context, fix)


async def _single_cell(context: Context) -> Response:
    cell = msgspec.convert(dict(context.query), ReportedCell)
    return _answer(context, radio_world().by_cells([cell], fallback=True))


async def _ground_fix(context: Context) -> Response:
    """Answer with the position of Wi-Fi, or else of cells."""
    body, query = context.body, context.query
    found = location_input.cells(body)
    scan = location_input.access_points(body["wifi"]) if "wifi" in body else []
    by_anchor, known = anchors.strongest_anchor(context.cloud, context.team, scan)
    by_wifi = by_anchor or radio_world().by_wifi(scan)
    fallback = query.get("fallback", True)
    by_cells = radio_world().by_cells(found, fallback=fallback) if found else None
    alternative = by_cells if by_wifi and query.get("alt") else None
    return _answer(context, by_wifi or by_cells, known, alternative)


def _answer(
    context: Context,
    fix: Fix | None,
    known: Sequence[Mapping[str, str]] = (),
    alternative: Fix | None = None,
) -> Response:
    """Store a position and answer with it; `known` are the anchors that were heard."""
    if fix is None:
        # Not the code of a path that is not there.
        raise DeviceCloudRefused(404, "no position found for this scan", code=40499)
    anchored = {"anchors": known} if known else {}
    _record_fix(context, fix, anchored)
    if not context.query.get("doReply", True):
        return PlainTextResponse("")
    answer = {**_to_resource(context, fix), **anchored}
    if alternative is not None:
        distance_m = round(_distance_m(fix, alternative), 1)
        answer["alt"] = {"loc": _to_resource(context, alternative), "dist": distance_m}
    return JSON(answer)


def _distance_m(one: Fix, other: Fix) -> float:
    """Return the metres between two positions of one town."""
    north = math.radians(other.lat - one.lat)
    east = math.radians(other.lon - one.lon) * math.cos(math.radians(one.lat))
    return 6_371_000 * math.hypot(north, east)


def _to_resource(context: Context, fix: Fix) -> dict[str, object]:
    sure = context.query.get("hiConf", False)
    return {
        "lat": fix.lat,
        "lon": fix.lon,
        "uncertainty": round(fix.uncertainty_m * (NINETY_FIVE_PERCENT if sure else 1), 3),
        "fulfilledWith": _method(context, fix),
    }


def _method(context: Context, fix: Fix) -> str:
    trial = context.principal.kind is CredentialKind.EVALUATION_TOKEN
    return fix.method + ("_EVAL" if trial else "")


def _record_fix(context: Context, fix: Fix, more: Mapping[str, object]) -> None:
    """Store the position if the request names a device, with the fields of `more`."""
    device = context.principal.device_id or context.headers.get("x-custom-device-id", "")
    if not device:
        return
    table = context.cloud.table(FIXES)
    at = context.cloud.clock.time()
    now = iso(at)
    method = _method(context, fix)
    resource = {
        "id": str(uuid.uuid4()),
        "deviceId": device,
        "serviceType": method if method in _IN_HISTORY else fix.method,
        "insertedAt": now,
        "lat": decimal_text(fix.lat),
        "lon": decimal_text(fix.lon),
        "uncertainty": decimal_text(fix.uncertainty_m),
        "meta": {},
        **more,
    }
    row = StoredFix(team=context.team, at=at, fix=with_meta(resource, now))
    table.put(str(resource["id"]), row)
    if len(table) > _MOST_FIXES:
        table.delete(next(iter(table)))


def decimal_text(number: float) -> str:
    """Return a number as the text of the history: digits and a point, never an exponent."""
    return f"{number:.8f}".rstrip("0").rstrip(".")


_NUMBER: Schema = {"type": "number"}
_ADDRESS = object_schema(
    lat=_NUMBER,
    lon=_NUMBER,
    uncertainty=_NUMBER,
    formatted=TEXT,
    address=object_schema(country=TEXT, state=TEXT, city=TEXT),
)
_PLACE = {"lat": _NUMBER, "lon": _NUMBER, "uncertainty": _NUMBER, "fulfilledWith": TEXT}
_ANCHORS: Schema = {"type": "array", "items": object_schema("name", macAddress=TEXT, name=TEXT)}
_POSITION = object_schema(
    "anchors",
    "alt",
    **_PLACE,
    anchors=_ANCHORS,
    alt=object_schema(loc=object_schema(**_PLACE), dist=_NUMBER),
)
# And `meta`, an object, which generated clients cannot tell from `$meta` by their names for it.
_FOUND = resource(
    "anchors",
    **texts("id", "deviceId", "serviceType"),
    insertedAt=MOMENT,
    **texts("lat", "lon", "uncertainty"),
    anchors=_ANCHORS,
)
_NO_REPLY: dict[str, Schema] = {"text/plain": {"type": "string", "maxLength": 0}}
"""What `doReply=false` leaves of an answer."""
# A query holds single values only.
_CELL: dict[str, Schema] = {
    name: schema for name, schema in location_input.CELL["properties"].items() if name != "nmr"
}
_DEVICE = Parameter(
    name="x-custom-device-id",
    where="header",
    schema=ID,
    description="The device in whose name a proxy asks: its history gets the position.",
)
_COMMON = (*in_query(doReply=FLAG, hiConf=FLAG), _DEVICE)
_ROUGH = (*_COMMON, *in_query(fallback=FLAG))


def _below(
    prefix: str, kind: str, access: AcceptedSchemes, *, deprecated: bool
) -> tuple[DeviceCloudOperation, ...]:
    """Return the operations of one form of the path."""
    scans = tuple(
        declare(
            f"POST {prefix}{suffix}", f"{kind}Locate{name}", f"Position by {suffix}.", handler,
            tag="Location", access=access, body=body, parameters=parameters,
            answers={200: _POSITION}, also=_NO_REPLY, deprecated=deprecated,
        )
        for suffix, name, handler, body, parameters in (
            ("wifi", "WiFi", _wifi, location_input.WIFI_SCAN, _COMMON),
            ("cell", "Cell", _cell, location_input.CELL_SCAN, _ROUGH),
            (
                "ground-fix", "GroundFix", _ground_fix, location_input.ANY_SCAN,
                (*_ROUGH, *in_query(alt=FLAG)),
            ),
        )
    )  # fmt: skip
    single = declare(
        f"GET {prefix}single-cell", f"{kind}LocateSingleCell", "Position by one cell.",
        _single_cell, tag="Location", access=access, deprecated=True,
        answers={200: _POSITION}, also=_NO_REPLY,
        parameters=(
            *_COMMON,
            *(
                Parameter(name=name, schema=schema, required=name in location_input.NETWORK)
                for name, schema in _CELL.items()
            ),
        ),
    )  # fmt: skip
    more = assistance.operations(prefix, kind, access, deprecated=deprecated)
    return (*scans, single, *more)


_CURRENT = "/v1/organizations/{organization}/projects/{project}/location/"
OPERATIONS = (
    *_below(_CURRENT, "", PROJECT_LOCATION, deprecated=False),
    *_below("/v1/location/", "Legacy", LEGACY_LOCATION, deprecated=True),
    assistance.OLDER_AGNSS,
    declare(
        "GET /v1/location/history", "LocationHistory", "Positions that were found.", _history,
        tag="Location", parameters=(*in_query(deviceId=TEXT, start=MOMENT, end=MOMENT), *PAGES),
        answers={200: list_of(_FOUND)},
    ),
    *anchors.OPERATIONS,
    declare(
        "GET /v1/location/geo", "ReverseGeocode", "The address of a place.", _geocode,
        tag="Location", access=LEGACY_LOCATION, answers={200: _ADDRESS},
        parameters=tuple(
            Parameter(name=name, schema=schema, required=True)
            for name, schema in location_input.COORDINATES["properties"].items()
        ),
    ),
    declare(
        "POST /v1/location/gnss", "StoreGNSSFix", "Store a position of the device's own.",
        _store_fix, tag="Location", access=LEGACY_LOCATION, parameters=(_DEVICE,),
        body=location_input.FIX, max_body=_LARGEST_FIX, answers={202: None},
    ),
)  # fmt: skip
