"""Anchors: access points whose position a user has stored (clause D8)."""

import re
from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from agent.standin.core.operation import in_path
from agent.standin.device_cloud.location import location_input
from agent.standin.device_cloud.location.radio_world import Fix
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import DeviceCloudRefused, not_found
from agent.standin.device_cloud.resource import Resource, accepted, answer_one, with_meta
from agent.standin.device_cloud.shapes import list_of, of, resource
from agent.standin.device_cloud.tables import ANCHORS, Anchor
from agent.standin.state import Cloud

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_\- ]")
_RANGE_M = 30.0
"""How far an anchor reaches indoors, roughly."""


def strongest_anchor(
    cloud: Cloud, team: str, points: Sequence[tuple[str, float]]
) -> tuple[Fix | None, list[dict[str, str]]]:
    """Return the position of the strongest anchor in a Wi-Fi scan, and all anchors in it."""
    table = cloud.table(ANCHORS)
    if not len(table):
        return None, []
    levels = dict(points)
    found = [row for row in (table.get(f"{team}/{address}") for address in levels) if row]
    if not found:
        return None, []
    best = max(found, key=lambda row: levels[row.mac_address])
    anchors = [
        {"macAddress": row.mac_address, **({"name": row.name} if row.name else {})} for row in found
    ]
    return Fix(best.lat, best.lon, _RANGE_M, "ANCHOR"), anchors


async def _create(context: Context) -> Response:
    table, body = context.cloud.table(ANCHORS), context.body
    address = location_input.mac_address(body["macAddress"])
    if f"{context.team}/{address}" in table:
        raise DeviceCloudRefused(409, "there is an anchor of that address")
    now = context.cloud.clock.iso()
    row = Anchor(
        mac_address=address,
        lat=float(body["lat"]),
        lon=float(body["lon"]),
        name=_name(body.get("name", "")),
        created_at=now,
        updated_at=now,
    )
    table.put(f"{context.team}/{address}", row)
    return accepted()


async def _listed(context: Context) -> Response:
    own = f"{context.team}/"
    anchors = context.cloud.table(ANCHORS).items()
    return context.page().answer((row for key, row in anchors if key.startswith(own)), _to_resource)


async def _fetch(context: Context) -> Response:
    return answer_one(_to_resource(_find(context)[1]))


async def _update(context: Context) -> Response:
    key, row = _anchor_to_change(context)
    body = context.body
    row.lat, row.lon = float(body.get("lat", row.lat)), float(body.get("lon", row.lon))
    row.name = _name(body.get("name", row.name))
    row.updated_at = context.cloud.clock.iso()
    context.cloud.table(ANCHORS).put(key, row)
    return accepted()


async def _delete(context: Context) -> Response:
    key, _ = _anchor_to_change(context)
    context.cloud.table(ANCHORS).delete(key)
    return accepted()


def _find(context: Context) -> tuple[str, Anchor]:
    key = f"{context.team}/{location_input.mac_address(context.path['mac_address'])}"
    row = context.cloud.table(ANCHORS).get(key)
    if row is None:
        raise not_found("no such anchor")
    return key, row


def _anchor_to_change(context: Context) -> tuple[str, Anchor]:
    key, row = _find(context)
    context.check_if_match(_to_resource(row).version)
    return key, row


def _name(text: str) -> str:
    # Other characters in a name are removed, not refused.
    return _NOT_IN_A_NAME.sub("", text)


def _to_resource(row: Anchor) -> Resource:
    return with_meta(msgspec.to_builtins(row), row.created_at, row.updated_at)


_EVERY, _ONE = "/v1/location/anchors", "/v1/location/anchors/{mac_address}"
_ADDRESS = (in_path("mac_address", location_input.MAC),)
_ANCHOR = resource(**of(Anchor)["properties"])
OPERATIONS = (
    declare(
        f"POST {_EVERY}", "CreateAnchor", "Tell where an access point is.", _create,
        tag="Location", body=location_input.ANCHOR, refusals=(409,), answers={202: None},
    ),
    declare(
        f"GET {_EVERY}", "ListAnchors", "The anchors of the team.", _listed,
        tag="Location", parameters=PAGES, answers={200: list_of(_ANCHOR)},
    ),
    declare(
        f"GET {_ONE}", "FetchAnchor", "One anchor.", _fetch,
        tag="Location", parameters=_ADDRESS, answers={200: _ANCHOR},
    ),
    declare(
        f"PATCH {_ONE}", "UpdateAnchor", "Move or rename an anchor.", _update,
        tag="Location", parameters=_ADDRESS, body=location_input.ANCHOR_CHANGE, answers={202: None},
    ),
    declare(
        f"DELETE {_ONE}", "DeleteAnchor", "Forget an anchor.", _delete,
        tag="Location", parameters=_ADDRESS, answers={202: None},
    ),
)  # fmt: skip
