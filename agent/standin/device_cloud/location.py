"""The location endpoints, in the organization form and the legacy form (clauses D8, D10.6, D10.7).

A handler serves both prefixes; each prefix has its own credentials. Anchors are access points whose
position a user has stored.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agent.standin.clock import iso
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.device_cloud import access, assistance, location_input, paging
from agent.standin.device_cloud.devices.registry import is_device_id
from agent.standin.device_cloud.location_input import ANCHOR, ANCHOR_CHANGE, MAC, mac_address
from agent.standin.device_cloud.radio_world import TOWN_M, Fix, radio_world
from agent.standin.device_cloud.refusals import DeviceCloudRefused, invalid, not_found
from agent.standin.device_cloud.resource import (
    accepted,
    answer_one,
    check_if_match,
    read_json,
    receive_body,
    require,
    with_meta,
)
from agent.standin.principal import CredentialKind, Principal
from agent.standin.state import Cloud

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_\- ]")
_ANCHOR_RANGE_M = 30.0
"""How far an anchor reaches indoors, roughly."""
_UNKNOWN_LEVEL_DBM = -128.0
NINETY_FIVE_PERCENT = 1.62
"""From the radius that holds 68 % to the one that holds 95 %, errors being normal both ways."""
_MOST_FIXES = 10_000
Handler = Callable[["Request", "Cloud", Principal], Awaitable[Response]]


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of location, below both prefixes where there are two."""
    found: list[Route] = []
    current = "/v1/organizations/{organization}/projects/{project}/location/"
    for suffix, method, handler in HANDLERS:
        name = {"agnss": "AGNSS", "pgps": "PGPS", "pgnss": "PGNSS"}.get(suffix, suffix)
        found += [
            Endpoint(
                current + suffix,
                _organization_form(cloud, handler),
                methods=[method],
                name=f"{name}-{method}",
            ),
            Endpoint(
                "/v1/location/" + suffix,
                _legacy_form(cloud, handler),
                methods=[method],
                name=f"Legacy-{name}-{method}",
            ),
        ]
    return [*found, *_position_routes(cloud), *anchor_routes(cloud)]


def _organization_form(cloud: Cloud, handler: Handler) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        path = request.path_params
        organization, project = path["organization"], path["project"]
        principal = access.project_location_client(request, cloud, organization, project)
        return await handler(request, cloud, principal)

    return answer


def _legacy_form(cloud: Cloud, handler: Handler) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        _require_legacy_paths(cloud)
        principal = access.location_client(request, cloud)
        return await handler(request, cloud, principal)

    return answer


def _require_legacy_paths(cloud: Cloud) -> None:
    if not cloud.settings.legacy_location:
        raise not_found("migrated: use the path with organization and project")


def _position_routes(cloud: Cloud) -> list[Route]:
    """Return the routes of stored positions and of addresses."""

    async def history(request: Request) -> Response:
        principal = access.user(request, cloud)
        device = request.query_params.get("deviceId")
        since = paging.moment(request, "start", default=0.0)
        until = paging.moment(request, "end", default=float("inf"))
        rows = [
            row["fix"]
            for row in cloud.table("fixes").values()
            if row["team"] == principal.team
            and device in {None, row["fix"]["deviceId"]}
            and since <= row["at"] < until
        ]
        items, rest = paging.page(request, descending=True).cut(rows)
        return JSON({"items": items, **rest})

    async def gnss(request: Request) -> Response:
        _require_legacy_paths(cloud)
        principal = access.location_client(request, cloud)
        body = await read_json(request, location_input.FIX)
        lon = body["lon"] if "lon" in body else body["lng"]
        fix = Fix(float(body["lat"]), float(lon), float(body.get("acc", 10)), "GNSS")
        _record_fix(request, cloud, principal, fix, "GNSS")
        return accepted()

    async def geo(request: Request) -> Response:
        _require_legacy_paths(cloud)
        access.location_client(request, cloud)
        place = location_input.of_query(request, location_input.COORDINATES)
        lat, lon = float(place["lat"]), float(place["lon"])
        address = radio_world().address(lat, lon)
        if address is None:
            raise not_found("no address is known there")
        formatted = ", ".join(address[name] for name in ("city", "state", "country"))
        resource = {"lat": lat, "lon": lon, "uncertainty": TOWN_M, "formatted": formatted}
        return JSON({**resource, "address": address})

    return [
        Endpoint("/v1/location/geo", geo, methods=["GET"], name="ReverseGeocode"),
        Endpoint("/v1/location/history", history, methods=["GET"], name="LocationHistory"),
        Endpoint("/v1/location/gnss", gnss, methods=["POST"], name="StoreGNSSFix"),
    ]


async def wifi(request: Request, cloud: Cloud, principal: Principal) -> Response:
    """Answer with the position of a Wi-Fi scan."""
    points = location_input.access_points(await read_json(request, location_input.WIFI_SCAN))
    fix, known = strongest_anchor(cloud, principal.team or cloud.team_id, points)
    fix = fix or radio_world().by_wifi(points)
    return _answer(request, cloud, principal, fix, service="WIFI", more=_anchors(known))


async def cell(request: Request, cloud: Cloud, principal: Principal) -> Response:
    """Answer with the position of a cell scan."""
    found = location_input.cells(await read_json(request, location_input.CELL_SCAN))
    fallback = paging.boolean(request, "fallback", default=True)
    fix = radio_world().by_cells(found, fallback=fallback)
    return _answer(request, cloud, principal, fix, service="CELL")


async def single_cell(request: Request, cloud: Cloud, principal: Principal) -> Response:
    """Answer with the position of one cell, which is in the query (deprecated)."""
    found = location_input.of_query(request, location_input.CELL)
    fix = radio_world().by_cells([found], fallback=True)
    return _answer(request, cloud, principal, fix, service="CELL")


async def ground_fix(request: Request, cloud: Cloud, principal: Principal) -> Response:
    """Answer with the position of Wi-Fi, or else of cells."""
    body = await read_json(request, location_input.ANY_SCAN)
    found = location_input.cells(body)
    scan = location_input.access_points(body["wifi"]) if "wifi" in body else []
    fallback = paging.boolean(request, "fallback", default=True)
    both = paging.boolean(request, "alt", default=False)
    by_anchor, known = strongest_anchor(cloud, principal.team or cloud.team_id, scan)
    by_wifi = by_anchor or radio_world().by_wifi(scan)
    by_cells = radio_world().by_cells(found, fallback=fallback) if found else None
    alternative = by_cells if by_wifi and both else None
    sure = paging.boolean(request, "hiConf", default=False)
    more = _anchors(known) | _alternative(by_wifi, alternative, principal, sure=sure)
    return _answer(request, cloud, principal, by_wifi or by_cells, service="GROUND_FIX", more=more)


HANDLERS: tuple[tuple[str, str, Handler], ...] = (
    ("wifi", "POST", wifi),
    ("cell", "POST", cell),
    ("ground-fix", "POST", ground_fix),
    ("single-cell", "GET", single_cell),
    ("agnss", "POST", assistance.agnss),
    ("agnss", "HEAD", assistance.agnss_size),
    ("pgps", "GET", assistance.pgps),
    ("pgnss", "GET", assistance.pgps),
)


def _answer(
    request: Request,
    cloud: Cloud,
    principal: Principal,
    fix: Fix | None,
    *,
    service: str,
    more: dict[str, Any] | None = None,
) -> Response:
    sure = paging.boolean(request, "hiConf", default=False)
    reply = paging.boolean(request, "doReply", default=True)
    if fix is None:
        raise not_found("no position found for this scan")
    _record_fix(request, cloud, principal, fix, service)
    if not reply:
        return PlainTextResponse("")
    return JSON({**_to_resource(fix, principal, sure=sure), **(more or {})})


def _anchors(known: list[dict[str, str]]) -> dict[str, Any]:
    return {"anchors": known} if known else {}


def _alternative(
    fix: Fix | None, other: Fix | None, principal: Principal, *, sure: bool
) -> dict[str, Any]:
    if fix is None or other is None:
        return {}
    distance_m = round(assistance.distance_m(fix, other), 1)
    return {"alt": {"loc": _to_resource(other, principal, sure=sure), "dist": distance_m}}


def _to_resource(fix: Fix, principal: Principal, *, sure: bool) -> dict[str, Any]:
    method = fix.method + ("_EVAL" if principal.kind is CredentialKind.EVALUATION_TOKEN else "")
    return {
        "lat": fix.lat,
        "lon": fix.lon,
        "uncertainty": round(fix.uncertainty_m * (NINETY_FIVE_PERCENT if sure else 1), 3),
        "fulfilledWith": method,
    }


def _record_fix(
    request: Request, cloud: Cloud, principal: Principal, fix: Fix, service: str
) -> None:
    """Store the position if the request names a device; numbers are texts in the history."""
    device = principal.device_id or request.headers.get("x-custom-device-id", "")
    if not device:
        return
    if not is_device_id(device):
        raise invalid("x-custom-device-id is no device id")
    table = cloud.table("fixes")
    at = cloud.clock.time()
    now = iso(at)
    resource = {
        "id": f"{table.next_number():012d}",
        "deviceId": device,
        "serviceType": service,
        "insertedAt": now,
        "lat": str(fix.lat),
        "lon": str(fix.lon),
        "uncertainty": str(fix.uncertainty_m),
    }
    team = principal.team or cloud.team_id
    table.put(resource["id"], {"team": team, "at": at, "fix": with_meta(resource, now)})
    if len(table) > _MOST_FIXES:
        table.delete(next(iter(table)))


def strongest_anchor(
    cloud: Cloud, team: str, points: Sequence[tuple[str, float | None]]
) -> tuple[Fix | None, list[dict[str, str]]]:
    """Return the position of the strongest anchor in a Wi-Fi scan, and all anchors in it."""
    table = cloud.table("anchors")
    if not len(table):
        return None, []
    levels = {address: _UNKNOWN_LEVEL_DBM if dbm is None else dbm for address, dbm in points}
    found = [row for row in (table.get(f"{team}/{address}") for address in levels) if row]
    if not found:
        return None, []
    best = max(found, key=lambda row: levels[row["macAddress"]])
    anchors = [{"macAddress": row["macAddress"], "name": row["name"]} for row in found]
    return Fix(best["lat"], best["lon"], _ANCHOR_RANGE_M, "ANCHOR"), anchors


def anchor_routes(cloud: Cloud) -> list[Route]:
    """Return the routes of anchors."""
    table = cloud.table("anchors")

    def find(request: Request, team: str) -> tuple[str, dict[str, Any]]:
        address = request.path_params["mac_address"]
        require(address, MAC)
        key = f"{team}/{mac_address(address)}"
        row = table.get(key)
        if row is None:
            raise not_found("no such anchor")
        return key, row

    async def create(request: Request) -> Response:
        principal = access.user(request, cloud)
        body = await read_json(request, ANCHOR)
        address = mac_address(body["macAddress"])
        if f"{principal.team}/{address}" in table:
            raise DeviceCloudRefused(409, "there is an anchor of that address")
        now = cloud.clock.iso()
        row = {"macAddress": address, **_fields(body), "createdAt": now, "updatedAt": now}
        table.put(f"{principal.team}/{address}", row)
        return accepted()

    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        own = f"{principal.team}/"
        mine = (_anchor_resource(row) for key, row in table.items() if key.startswith(own))
        items, rest = paging.page(request).cut(mine)
        return JSON({"items": items, **rest})

    async def fetch(request: Request) -> Response:
        principal = access.user(request, cloud)
        return answer_one(_anchor_resource(find(request, principal.team)[1]))

    async def update(request: Request) -> Response:
        principal = access.user(request, cloud)
        await receive_body(request)
        key, row = find(request, principal.team)
        check_if_match(request, _anchor_resource(row)["$meta"]["version"])
        body = await read_json(request, ANCHOR_CHANGE)
        table.put(key, {**row, **_fields({**row, **body}), "updatedAt": cloud.clock.iso()})
        return accepted()

    async def delete(request: Request) -> Response:
        principal = access.user(request, cloud)
        key, row = find(request, principal.team)
        check_if_match(request, _anchor_resource(row)["$meta"]["version"])
        table.delete(key)
        return accepted()

    every, one = "/v1/location/anchors", "/v1/location/anchors/{mac_address}"
    return [
        Endpoint(every, create, methods=["POST"], name="CreateAnchor"),
        Endpoint(every, listed, methods=["GET"], name="ListAnchors"),
        Endpoint(one, fetch, methods=["GET"], name="FetchAnchor"),
        Endpoint(one, update, methods=["PATCH"], name="UpdateAnchor"),
        Endpoint(one, delete, methods=["DELETE"], name="DeleteAnchor"),
    ]


def _fields(body: dict[str, Any]) -> dict[str, Any]:
    # Other characters in a name are removed, not refused.
    name = _NOT_IN_A_NAME.sub("", body.get("name", ""))
    return {"lat": float(body["lat"]), "lon": float(body["lon"]), "name": name}


def _anchor_resource(row: dict[str, Any]) -> dict[str, Any]:
    return with_meta(row, row["createdAt"], row["updatedAt"])
