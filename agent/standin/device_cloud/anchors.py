"""Anchors: access points whose place a user has told (the device cloud's public OpenAPI document).

One that is heard goes before all else that is: its place is the answer, and the strongest counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent.standin.device_cloud import access, paging
from agent.standin.device_cloud.location_input import ANCHOR, ANCHOR_CHANGE, MAC, mac_address
from agent.standin.device_cloud.refusals import DeviceCloudRefused, not_found
from agent.standin.device_cloud.resource import (
    accepted,
    answer_one,
    arrived,
    check_if_match,
    read_json,
    require,
    with_meta,
)
from agent.standin.dispatch import Endpoint
from agent.standin.errors import JSON
from agent.standin.radio_world import Fix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_\- ]")
_UNCERTAINTY_M = 30.0
"""How far an anchor is heard indoors, roughly."""
_UNKNOWN_LEVEL_DBM = -128.0


def routes(cloud: Cloud) -> list[Route]:
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
        who = access.user(request, cloud)
        body = await read_json(request, ANCHOR)
        address = mac_address(body["macAddress"])
        if f"{who.team}/{address}" in table:
            raise DeviceCloudRefused(409, "there is an anchor of that address")
        now = cloud.clock.iso()
        row = {"macAddress": address, **_fields(body), "createdAt": now, "updatedAt": now}
        table.put(f"{who.team}/{address}", row)
        return accepted()

    async def listed(request: Request) -> Response:
        who = access.user(request, cloud)
        mine = (_show(row) for key, row in table.items() if key.startswith(f"{who.team}/"))
        items, rest = paging.page(request).cut(mine)
        return JSON({"items": items, **rest})

    async def fetch(request: Request) -> Response:
        who = access.user(request, cloud)
        return answer_one(_show(find(request, who.team)[1]))

    async def update(request: Request) -> Response:
        who = access.user(request, cloud)
        await arrived(request)
        key, row = find(request, who.team)
        check_if_match(request, _show(row)["$meta"]["version"])
        body = await read_json(request, ANCHOR_CHANGE)
        table.put(key, {**row, **_fields({**row, **body}), "updatedAt": cloud.clock.iso()})
        return accepted()

    async def delete(request: Request) -> Response:
        who = access.user(request, cloud)
        key, row = find(request, who.team)
        check_if_match(request, _show(row)["$meta"]["version"])
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


def heard(
    cloud: Cloud, team: str, points: Sequence[tuple[str, float | None]]
) -> tuple[Fix | None, list[dict[str, str]]]:
    """Return the place of the strongest anchor among access points, and those that were heard."""
    table = cloud.table("anchors")
    if not len(table):
        return None, []
    levels = {address: _UNKNOWN_LEVEL_DBM if dbm is None else dbm for address, dbm in points}
    found = [row for row in (table.get(f"{team}/{address}") for address in levels) if row]
    if not found:
        return None, []
    best = max(found, key=lambda row: levels[row["macAddress"]])
    shown = [{"macAddress": row["macAddress"], "name": row["name"]} for row in found]
    return Fix(best["lat"], best["lon"], _UNCERTAINTY_M, "ANCHOR"), shown


def _fields(body: dict[str, Any]) -> dict[str, Any]:
    # What else is written in a name is removed, not refused.
    name = _NOT_IN_A_NAME.sub("", body.get("name", ""))
    return {"lat": float(body["lat"]), "lon": float(body["lon"]), "name": name}


def _show(row: dict[str, Any]) -> dict[str, Any]:
    return with_meta(row, row["createdAt"], row["updatedAt"])
