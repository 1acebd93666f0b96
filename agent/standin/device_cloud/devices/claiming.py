"""The provisioning host: claimed devices, provisioning commands, rules and tags.

No kit fetches its commands here. The stand-in plays the claimed device, because released tools wait
for the answers: a command that it answered carries `answeredBy`, and changed nothing on any kit.
With `Settings.play_claimed_devices` off, commands stay pending.
"""

from __future__ import annotations

import base64
import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.clock import iso
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import access, paging
from agent.standin.device_cloud.devices.credentials import CsvTable
from agent.standin.device_cloud.devices.registry import TAGS
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, not_found
from agent.standin.device_cloud.resource import (
    answer_one,
    check_if_match,
    decode_json,
    read_json,
    receive_body,
    require,
    with_meta,
)
from agent.standin.state import Cloud

CLAIMS = CsvTable("claim token[,tags joined by commas]", 1, 2, first=r"[A-Za-z0-9_.=-]{30,}")
# The bytes of the UUID in the body of an attestation token.
_BEFORE_UUID, _AFTER_UUID = 6, 22


# The body of an attestation token is a CBOR array of five with fixed lengths: identity, the
# device's UUID, its type, its firmware's UUID, a nonce. So is its signature: ES256, not attached.
_SIX_BITS = "[A-Za-z0-9_-]"
_IDENTITY = f"2dn3hQFQ{_SIX_BITS}{{21}}[AQgw][BFJNRVZdhlptx159]Q"
_IDENTITY += f"{_SIX_BITS}{{21}}[FVl1][A-D]{_SIX_BITS}{{21}}"
CLAIM: Schema = {
    "type": "object",
    "required": ["claimToken"],
    "properties": {
        "claimToken": {
            "type": "string",
            "maxLength": 4096,
            "pattern": rf"^{_IDENTITY}(\.{_SIX_BITS}*)?$",
            "description": "What AT%ATTESTTOKEN answers.",
        },
        "tags": TAGS,
    },
}
# Attributes of a distinguished name as RFC 4514 writes them, those that need no escape.
_ASCII = "[A-Za-z0-9]([A-Za-z0-9 ._:@/-]{0,62}[A-Za-z0-9])?"
_ATTRIBUTE = f"(C=[A-Z]{{2}}|(CN|O|OU|L|ST|STREET|UID)={_ASCII})"
_SEC_TAG: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}


def _command(**fields: Schema) -> Schema:
    return {
        "type": "object",
        "required": [name for name in fields if name in {"secTag", "content"}],
        "properties": fields,
    }


COMMANDS = {
    "certificateSigningRequest": _command(
        secTag=_SEC_TAG,
        attributes={
            "type": "string",
            "maxLength": 512,
            "pattern": f"^({_ATTRIBUTE}(,{_ATTRIBUTE})*)?$",
        },
        keyUsage={"type": "string", "pattern": "^[01]{9}$"},
    ),
    "clientCertificate": _command(secTag=_SEC_TAG, content={"type": "string"}),
    "serverCertificate": _command(secTag=_SEC_TAG, content={"type": "string"}),
    "clientPrivateKeyGeneration": _command(secTag=_SEC_TAG),
    "cloudAccessKeyGeneration": _command(secTag=_SEC_TAG),
    "finished": _command(),
}
COMMAND: Schema = {
    "type": "object",
    "required": ["request"],
    "properties": {
        "description": {"type": "string", "maxLength": 1024},
        "request": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": COMMANDS,
        },
    },
}


def rule_schema(key: str) -> Schema:
    """Return the schema of an object that one field identifies."""
    name: Schema = {"type": "string", "minLength": 1}
    return {"type": "object", "required": [key], "properties": {key: name, "tags": TAGS}}


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of claimed devices."""

    async def claim(request: Request) -> Response:
        principal = access.user(request, cloud)
        dry = paging.boolean(request, "dryrun", default=False)
        body = await request.body()
        # A released tool sends CSV with no content type at all, so the body decides.
        if not body.lstrip().startswith(b"{"):
            return _claim_csv(cloud, principal.team, body, dry=dry)
        request_body = decode_json(body)
        require(request_body, CLAIM)
        device = _claim(cloud, principal.team, request_body, dry=dry)
        if dry:
            return Response(status_code=202)
        return answer_one(_to_resource(device, cloud.table("claimed").get(device)), 201)

    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        rows = [
            (key, r) for key, r in cloud.table("claimed").items() if r["team"] == principal.team
        ]
        items, rest = paging.page(request).cut(rows)
        return JSON({"items": [_to_resource(key, row) for key, row in items], **rest})

    async def fetch(request: Request) -> Response:
        principal = access.user(request, cloud)
        device = request.path_params["device"]
        return answer_one(_to_resource(device, find(cloud, principal.team, device)))

    async def unclaim(request: Request) -> Response:
        principal = access.user(request, cloud)
        device = request.path_params["device"]
        row = find(cloud, principal.team, device)
        check_if_match(request, _to_resource(device, row)["$meta"]["version"])
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
        *_rule_routes(cloud, "/v1/provisioning-rules", "name"),
        *_rule_routes(cloud, "/v1/provisioning/tags", "tag"),
    ]


def find(cloud: Cloud, team: str, device: str) -> dict[str, Any]:
    """Return a claimed device of the team. Raises a 404 where there is none."""
    row: dict[str, Any] | None = cloud.table("claimed").get(device)
    if row is None or row["team"] != team:
        raise not_found("the device is not claimed")
    return row


def _rule_routes(cloud: Cloud, path: str, key: str) -> list[Route]:
    """Return the routes of a list of objects, each identified by one field."""
    table = cloud.table(path.rpartition("/")[2])

    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        rows = [row["shown"] for row in table.values() if row["team"] == principal.team]
        items, rest = paging.page(request).cut(rows)
        return JSON({"items": items, **rest})

    async def create(request: Request) -> Response:
        principal = access.user(request, cloud)
        body = await read_json(request, rule_schema(key))
        row = f"{principal.team}/{body[key]}"
        known = table.get(row)
        if known is not None:
            check_if_match(request, known["shown"]["$meta"]["version"])
        tags = list(dict.fromkeys(body.get("tags", [])))
        resource = {"id": str(uuid.uuid4()), **body, "tags": tags}
        resource = with_meta(resource, cloud.clock.iso())
        table.put(row, {"team": principal.team, "shown": resource})
        return answer_one(resource, 201)

    return [
        Endpoint(path, listed, methods=["GET"]),
        Endpoint(path, create, methods=["POST"]),
    ]


def _claim_csv(cloud: Cloud, team: str, body: bytes, *, dry: bool) -> Response:
    """Claim each row of a CSV: a token, and tags joined by commas; the answer lists failures."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_request("the body is neither JSON nor CSV") from error
    rows = CLAIMS.rows(text)
    claimed: list[str] = []
    failed: list[dict[str, Any]] = []
    for number, (token, *tags) in enumerate(rows):
        claim = {"claimToken": token, "tags": [tag for tag in ",".join(tags).split(",") if tag]}
        try:
            require(claim, CLAIM)
            claimed.append(_claim(cloud, team, claim, dry=dry))
        except DeviceCloudRefused as error:
            failed.append({"row": number, "message": error.message})
    return JSON({"claimedIds": claimed, "failed": failed}, 201 if claimed and not dry else 200)


def _claim(cloud: Cloud, team: str, body: dict[str, Any], *, dry: bool = False) -> str:
    """Claim a device; return its UUID. Refuses one that is claimed already."""
    device = _device_of(body["claimToken"])
    if device in cloud.table("claimed"):
        raise DeviceCloudRefused(409, "the device is claimed already")
    if not dry:
        tags = list(dict.fromkeys(body.get("tags", [])))
        row = {"team": team, "tags": tags, "claimed_at": cloud.clock.time(), "commands": []}
        cloud.table("claimed").put(device, row)
    return device


def _to_resource(device: str, row: dict[str, Any]) -> dict[str, Any]:
    resource = {"id": device, "tenantId": row["team"], "tags": row["tags"]}
    return with_meta({**resource, "commands": row["commands"]}, iso(row["claimed_at"]))


def _device_of(token: str) -> str:
    """Return the UUID of the device in an attestation token whose form is valid.

    The signature is not verified: the stand-in has no identity keys of the chip maker.
    """
    body = base64.urlsafe_b64decode(token.partition(".")[0])
    return str(uuid.UUID(bytes=body[_BEFORE_UUID:_AFTER_UUID]))


def provisioning_routes(cloud: Cloud) -> list[Route]:
    """Return the routes of provisioning commands."""

    async def create(request: Request) -> Response:
        principal = access.user(request, cloud)
        device = request.path_params["device"]
        await receive_body(request)
        claimed = find(cloud, principal.team, device)
        body = await read_json(request, COMMAND)
        command = str(uuid.uuid4())
        now = cloud.clock.time()
        row = {
            "device": device,
            "description": body.get("description", ""),
            "request": body["request"],
            "created_at": now,
            "due": now + cloud.settings.bulk_s,
            "response": None,
        }
        cloud.table("provisioning").put(command, row)
        claimed = {**claimed, "commands": [*claimed["commands"], command]}
        cloud.table("claimed").put(device, claimed)
        return answer_one(_command_resource(cloud, command, row), 201)

    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        commands = find(cloud, principal.team, request.path_params["device"])["commands"]
        items, rest = paging.page(request).cut(commands)
        table = cloud.table("provisioning")
        return JSON({"items": [_command_resource(cloud, c, table.get(c)) for c in items], **rest})

    async def fetch(request: Request) -> Response:
        principal = access.user(request, cloud)
        claimed = find(cloud, principal.team, request.path_params["device"])
        command = request.path_params["command"]
        if command not in claimed["commands"]:
            raise not_found("no such command")
        return answer_one(
            _command_resource(cloud, command, cloud.table("provisioning").get(command))
        )

    many = "/v1/claimed-devices/{device}/provisioning"
    return [
        Endpoint(many, create, methods=["POST"], name="CreateDeviceProvisioningCommand"),
        Endpoint(many, listed, methods=["GET"], name="ListDeviceProvisioningCommands"),
        Endpoint(
            many + "/{command}", fetch, methods=["GET"], name="FetchDeviceProvisioningCommand"
        ),
    ]


def _command_resource(cloud: Cloud, command: str, row: dict[str, Any]) -> dict[str, Any]:
    now = cloud.clock.time()
    plays = cloud.settings.play_claimed_devices
    if plays and now >= row["due"] and row["response"] is None:
        row = {**row, "response": _answer_of_kit(row["request"])}
        cloud.table("provisioning").put(command, row)
    done = row["response"] is not None
    half = (row["created_at"] + row["due"]) / 2
    waiting = "IN_PROGRESS" if plays and now >= half else "PENDING"
    resource = {
        "id": command,
        "deviceId": row["device"],
        "description": row["description"],
        "request": row["request"],
        "status": "SUCCEEDED" if done else waiting,
        "createdAt": iso(row["created_at"]),
    }
    if done:
        resource["response"] = row["response"]
        resource["answeredBy"] = "stand-in"
    return with_meta(resource, iso(row["created_at"]), iso(row["due"]) if done else "")


def _answer_of_kit(command: dict[str, Any]) -> dict[str, Any]:
    """Return what a kit would answer to a command; no kit has carried it out."""
    ((kind, content),) = command.items()
    if kind != "certificateSigningRequest":
        return {kind: {}}
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name.from_rfc4514_string(content.get("attributes", ""))
    builder = x509.CertificateSigningRequestBuilder(name)
    signed = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    return {kind: {"csr": base64.urlsafe_b64encode(signed).rstrip(b"=").decode()}}
