"""The provisioning host: claimed devices, rules and tags."""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent.standin.clock import iso
from agent.standin.device_cloud import access, paging
from agent.standin.device_cloud.credentials_csv import parse_rows
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, invalid, not_found
from agent.standin.device_cloud.resource import (
    answer_one,
    check_if_match,
    decode_json,
    read_json,
    with_meta,
)
from agent.standin.dispatch import Endpoint
from agent.standin.errors import JSON

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from agent.standin.state import Cloud

_TAG = re.compile(r"[a-zA-Z0-9_.@:#-]{1,128}")
_ATTESTATION = 1
"""The first item of an attestation token's message: device identity, version 1."""


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of claimed devices."""

    async def claim(request: Request) -> Response:
        who = access.user(request, cloud)
        body = await request.body()
        # A released tool sends CSV with no content type at all: the body itself tells.
        if not body.lstrip().startswith(b"{"):
            return _claim_rows(cloud, who.team, body)
        wish = decode_json(body)
        device = _device_of(wish.get("claimToken"))
        row = cloud.table("claimed").get(device)
        if row is not None:
            raise bad_request("the device is claimed already")
        tags = _tags(wish.get("tags", []))
        if paging.boolean(request, "dryrun", default=False):
            return Response(status_code=202)
        return answer_one(_show(device, _claim(cloud, who.team, device, tags)), 201)

    async def listed(request: Request) -> Response:
        who = access.user(request, cloud)
        rows = [(key, r) for key, r in cloud.table("claimed").items() if r["team"] == who.team]
        items, rest = paging.page(request).cut(rows)
        return JSON({"items": [_show(key, row) for key, row in items], **rest})

    async def fetch(request: Request) -> Response:
        who = access.user(request, cloud)
        device = request.path_params["device"]
        return answer_one(_show(device, find(cloud, who.team, device)))

    async def unclaim(request: Request) -> Response:
        who = access.user(request, cloud)
        device = request.path_params["device"]
        row = find(cloud, who.team, device)
        check_if_match(request, _show(device, row)["$meta"]["version"])
        for command in row["commands"]:
            cloud.table("provisioning").delete(command)
        cloud.table("claimed").delete(device)
        return Response(status_code=204)

    one = "/v1/claimed-devices/{device}"
    return [
        Endpoint("/v1/claimed-devices", claim, methods=["POST"], name="ClaimDeviceOwnership"),
        Endpoint("/v1/claimed-devices", listed, methods=["GET"], name="ListClaimedDevices"),
        Endpoint(one, fetch, methods=["GET"], name="FetchClaimedDevice"),
        Endpoint(one, unclaim, methods=["DELETE"], name="UnclaimDevice"),
        *_named(cloud, "/v1/provisioning-rules", "name"),
        *_named(cloud, "/v1/provisioning/tags", "tag"),
    ]


def find(cloud: Cloud, team: str, device: str) -> dict[str, Any]:
    """Return a claimed device of the team. Raises a 404 where there is none."""
    row: dict[str, Any] | None = cloud.table("claimed").get(device)
    if row is None or row["team"] != team:
        raise not_found("the device is not claimed")
    return row


def _named(cloud: Cloud, path: str, key: str) -> list[Route]:
    """Return the routes of a list of objects that are known by one field."""
    table = cloud.table(path.rpartition("/")[2])

    async def listed(request: Request) -> Response:
        who = access.user(request, cloud)
        rows = [row["shown"] for row in table.values() if row["team"] == who.team]
        items, rest = paging.page(request).cut(rows)
        return JSON({"items": items, **rest})

    async def create(request: Request) -> Response:
        who = access.user(request, cloud)
        body = await read_json(request)
        if not isinstance(body, dict) or not isinstance(body.get(key), str) or not body[key]:
            raise invalid(f"the body holds {key!r}, a text")
        tags = _tags(body.get("tags", []))
        shown = {"id": str(uuid.uuid4()), **body, "tags": tags}
        shown = with_meta(shown, cloud.clock.iso())
        table.put(f"{who.team}/{body[key]}", {"team": who.team, "shown": shown})
        return answer_one(shown, 201)

    return [
        Endpoint(path, listed, methods=["GET"]),
        Endpoint(path, create, methods=["POST"]),
    ]


def _claim_rows(cloud: Cloud, team: str, body: bytes) -> Response:
    """Claim each row of a CSV: a token, and tags joined by commas."""
    try:
        rows = parse_rows(body.decode())
    except UnicodeDecodeError as error:
        raise bad_request("the body is neither JSON nor CSV") from error
    claimed, failed = [], []
    for number, row in enumerate(rows):
        try:
            device = _device_of(row[0])
            if device in cloud.table("claimed"):
                raise bad_request("the device is claimed already")
            _claim(cloud, team, device, _tags(row[1].split(",") if len(row) > 1 else []))
            claimed.append(device)
        except DeviceCloudRefused as error:
            failed.append({"row": number, "message": error.message})
    answer: dict[str, Any] = {"claimedIds": claimed, "failed": failed}
    if claimed:
        return JSON(answer, 201)
    return JSON({**bad_request("no row was claimed").body(), **answer}, 400)


def _claim(cloud: Cloud, team: str, device: str, tags: list[str]) -> dict[str, Any]:
    row = {"team": team, "tags": tags, "claimed_at": cloud.clock.time(), "commands": []}
    cloud.table("claimed").put(device, row)
    return row


def _show(device: str, row: dict[str, Any]) -> dict[str, Any]:
    shown = {"id": device, "tenantId": row["team"], "tags": row["tags"]}
    return with_meta({**shown, "commands": row["commands"]}, iso(row["claimed_at"]))


def _tags(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(
        isinstance(tag, str) and _TAG.fullmatch(tag) for tag in value
    ):
        raise invalid("tags are a list of texts of letters, digits and _ . @ : # -")
    return list(dict.fromkeys(value))


def _device_of(token: Any) -> str:
    """Return the UUID of the device that an attestation token speaks for.

    Its signature is the chip maker's to check: this stand-in knows no identity keys.
    """
    import cbor2

    if not isinstance(token, str) or len(token) > 4096:
        raise bad_request("claimToken is an attestation token")
    body = token.strip().partition(".")[0]
    try:
        message = cbor2.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (cbor2.CBORDecodeError, binascii.Error, ValueError, RecursionError) as error:
        raise bad_request("claimToken is no attestation token") from error
    if isinstance(message, cbor2.CBORTag):
        message = message.value
    if (
        not isinstance(message, list | tuple)
        or len(message) < 2
        or message[0] != _ATTESTATION
        or not isinstance(message[1], bytes)
        or len(message[1]) != 16
    ):
        raise bad_request("claimToken is no attestation token of a device")
    return str(uuid.UUID(bytes=message[1]))
