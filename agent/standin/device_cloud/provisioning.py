"""Commands for claimed devices, and a made-up device that carries them out.

No kit asks this stand-in for its commands, so each is done after a moment, as a kit would do it:
a signing request is made with a key that only then exists.
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

from agent.standin.clock import iso
from agent.standin.device_cloud import access, bodies, paging
from agent.standin.device_cloud.claiming import find
from agent.standin.device_cloud.refusals import not_found
from agent.standin.device_cloud.resource import answer_one, arrived, read_json, with_meta
from agent.standin.dispatch import Endpoint
from agent.standin.errors import JSON

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of provisioning commands."""

    async def create(request: Request) -> Response:
        who = access.user(request, cloud)
        device = request.path_params["device"]
        await arrived(request)
        claimed = find(cloud, who.team, device)
        body = await read_json(request, bodies.COMMAND)
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
        return answer_one(_show(cloud, command, row), 201)

    async def listed(request: Request) -> Response:
        who = access.user(request, cloud)
        commands = find(cloud, who.team, request.path_params["device"])["commands"]
        items, rest = paging.page(request).cut(commands)
        table = cloud.table("provisioning")
        return JSON({"items": [_show(cloud, c, table.get(c)) for c in items], **rest})

    async def fetch(request: Request) -> Response:
        who = access.user(request, cloud)
        claimed = find(cloud, who.team, request.path_params["device"])
        command = request.path_params["command"]
        if command not in claimed["commands"]:
            raise not_found("no such command")
        return answer_one(_show(cloud, command, cloud.table("provisioning").get(command)))

    many = "/v1/claimed-devices/{device}/provisioning"
    return [
        Endpoint(many, create, methods=["POST"], name="CreateDeviceProvisioningCommand"),
        Endpoint(many, listed, methods=["GET"], name="ListDeviceProvisioningCommands"),
        Endpoint(
            many + "/{command}", fetch, methods=["GET"], name="FetchDeviceProvisioningCommand"
        ),
    ]


def _show(cloud: Cloud, command: str, row: dict[str, Any]) -> dict[str, Any]:
    now = cloud.clock.time()
    done = now >= row["due"]
    if done and row["response"] is None:
        row = {**row, "response": _carry_out(row["request"])}
        cloud.table("provisioning").put(command, row)
    half = (row["created_at"] + row["due"]) / 2
    waiting = "PENDING" if now < half else "IN_PROGRESS"
    shown = {
        "id": command,
        "deviceId": row["device"],
        "description": row["description"],
        "request": row["request"],
        "status": "SUCCEEDED" if done else waiting,
        "createdAt": iso(row["created_at"]),
    }
    if done:
        shown["response"] = row["response"]
    return with_meta(shown, iso(row["created_at"]), iso(row["due"]) if done else "")


def _carry_out(wish: dict[str, Any]) -> dict[str, Any]:
    """Do what a kit would do, and return what it would answer."""
    ((kind, content),) = wish.items()
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
