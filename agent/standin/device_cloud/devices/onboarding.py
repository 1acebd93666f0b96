"""Onboarding: devices with their keys, one by one or by CSV, and their ownership (D9.3, D10.8)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Awaitable, Callable
from secrets import compare_digest
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.clock import iso
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import access, refusals
from agent.standin.device_cloud.bundles import FIRMWARE_TYPES
from agent.standin.device_cloud.devices import bulk, credentials
from agent.standin.device_cloud.devices.registry import TAGS, is_device_id, registry
from agent.standin.device_cloud.resource import (
    accepted,
    answer_one,
    check_if_match,
    read_json,
    receive_body,
    with_meta,
)
from agent.standin.device_cloud.seed import ip_device
from agent.standin.jwt import private_pem
from agent.standin.state import Cloud

_PEM: Schema = {
    "type": "string",
    "format": "pem",
    "description": "A certificate or a public key of the curve P-256.",
}
NEW_DEVICE: Schema = {
    "type": "object",
    "anyOf": [{"required": ["certificate"]}, {"required": ["onboardingToken"]}],
    "properties": {
        "certificate": _PEM,
        "onboardingToken": _PEM,
        "subType": {"type": "string", "pattern": "^[a-zA-Z0-9_.,@/:#-]{0,799}$"},
        "tags": TAGS,
        "supportedFirmwareTypes": {
            "type": "array",
            "items": {"type": "string", "enum": sorted(FIRMWARE_TYPES)},
        },
    },
}
PROJECT_DEVICES = credentials.CsvTable('device id,"PEM"', 2, 2, header="deviceId,certificate")
_TOKENS = ("attestationToken", "onboardingToken")
_CREATE = "/v1/organizations/{organization}/projects/{project}/long-range/devices/bulk"
_LIFE = dt.timedelta(days=365 * 20)
_LONGEST_CODE = 128


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes that onboard devices."""

    def from_csv(
        endpoint: str, table: credentials.CsvTable
    ) -> Callable[[Request], Awaitable[Response]]:
        async def accept(request: Request) -> Response:
            principal = access.user(request, cloud)
            text = await credentials.read_text(request)
            table.rows(text)
            return JSON(
                {"bulkOpsRequestId": bulk.start(cloud, principal.team, endpoint, text)}, 202
            )

        return accept

    async def onboard_one(request: Request) -> Response:
        principal = access.user(request, cloud)
        await receive_body(request)
        device_id = request.path_params["device_id"]
        known = registry(cloud).find(device_id)
        if known is not None and known["team"] == principal.team:
            check_if_match(request, known["version"])
        device = _new_device(device_id, await read_json(request, NEW_DEVICE))
        try:
            bulk.onboard(cloud, principal.team, device)
        except credentials.BadKey as error:
            raise refusals.DeviceCloudRefused(400, str(error), code=40001) from error
        return accepted()

    return [
        Endpoint(
            "/v1/devices/public-keys",
            from_csv("REGISTER_PUBLIC_KEYS", credentials.KEYS),
            methods=["POST"],
            name="RegisterPublicKeys",
        ),
        Endpoint(
            "/v1/devices/certificates",
            from_csv("REGISTER_CERTIFICATES", credentials.KEYS),
            methods=["POST"],
            name="RegisterCertificates",
        ),
        Endpoint(
            "/v1/devices",
            from_csv("ONBOARD_DEVICES", credentials.NEW_DEVICES),
            methods=["POST"],
            name="OnboardDevices",
        ),
        Endpoint("/v1/devices/{device_id}", onboard_one, methods=["POST"], name="OnboardDevice"),
    ]


def _new_device(device_id: str, body: dict[str, Any]) -> bulk.NewDevice:
    if not is_device_id(device_id):
        raise refusals.invalid("that is no device id")
    pem = body.get("certificate", body.get("onboardingToken"))
    assert isinstance(pem, str)
    firmware = body.get("supportedFirmwareTypes", [])
    return bulk.NewDevice(device_id, pem, body.get("subType", ""), body.get("tags", []), firmware)


def project_routes(cloud: Cloud) -> list[Route]:
    """Return the routes that create the devices of a project from certificates."""

    async def create(request: Request) -> Response:
        path = request.path_params
        principal = access.project_client(request, cloud, path["organization"], path["project"])
        head, *rest = re.split(
            credentials.LINE_END, await credentials.read_text(request), maxsplit=1
        )
        columns, rows = head.split(","), "".join(rest)
        if any(name in columns for name in _TOKENS):
            raise refusals.not_built(
                "nothing public says what such a token holds: send certificates"
            )
        if columns != PROJECT_DEVICES.header.split(","):
            raise refusals.invalid("the first row names the columns: deviceId,certificate")
        PROJECT_DEVICES.rows(rows)
        key = bulk.start(cloud, principal.team or cloud.team_id, bulk.CREATE_DEVICES, rows)
        return Response(status_code=202, headers={"Location": f"{request.url.path}/{key}"})

    async def fetch(request: Request) -> Response:
        path = request.path_params
        access.project_client(request, cloud, path["organization"], path["project"])
        row = cloud.table("bulk").get(path["request_id"])
        if row is None or row["endpoint"] != bulk.CREATE_DEVICES:
            raise refusals.not_found("no such bulk request")
        return answer_one(_project_request(cloud, path["request_id"], row))

    return [
        Endpoint(_CREATE, create, methods=["POST"], name="CreateProjectDevices"),
        Endpoint(_CREATE + "/{request_id}", fetch, methods=["GET"], name="FetchProjectDevices"),
    ]


def _project_request(cloud: Cloud, key: str, row: dict[str, Any]) -> dict[str, Any]:
    status = bulk.status(cloud, row)
    resource: dict[str, Any] = {
        "bulkOpsRequestId": key,
        # A released tool takes any other status for the end.
        "status": "IN_PROGRESS" if status == "PENDING" else status,
        "requestedAt": iso(row["requested_at"]),
    }
    if row["errors"]:
        ids = [fields[0] for fields in credentials.parse_rows(row["text"])]
        parsed = (error.removeprefix("[").partition("]: ") for error in row["errors"])
        resource["errorSummary"] = {
            "errors": [
                {"row": int(number), "deviceId": ids[int(number)], "error": text}
                for number, _, text in parsed
            ]
        }
    return with_meta(resource, resource["requestedAt"], iso(row["due"]) if row["done"] else "")


def certificate_routes(cloud: Cloud) -> list[Route]:
    """Return the route that makes a certificate for just-in-time provisioning."""

    async def create(request: Request) -> Response:
        principal = access.user(request, cloud)
        device_id = request.path_params["device_id"]
        if not is_device_id(device_id):
            raise refusals.invalid("that is no device id")
        code = (await request.body()).decode("utf-8", "replace").strip()
        if not 1 <= len(code) <= _LONGEST_CODE:
            raise refusals.bad_request("the body is the ownership code")
        made = _certificate(device_id, cloud.clock.now())
        try:
            credentials.register(cloud, principal.team, device_id, made["clientCert"])
        except credentials.BadKey as error:
            raise refusals.DeviceCloudRefused(400, str(error), code=40001) from error
        cloud.table("ownership").put(device_id.casefold(), {"team": principal.team, "code": code})
        return JSON({"clientId": device_id, **made}, 201)

    path = "/v1/devices/{device_id}/certificates"
    return [Endpoint(path, create, methods=["POST"], name="CreateDeviceCertificate")]


def _certificate(device_id: str, now: dt.datetime) -> dict[str, str]:
    """Return the CA, the bundle of device and intermediate certificate, and the private key."""
    from cryptography.hazmat.primitives import serialization

    root, intermediate, device = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))

    def name(common: str, unit: str = "") -> x509.Name:
        units = [x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common[:64]), *units])

    top, middle = (
        name("Stand-in root, test only"),
        name("Stand-in, test only", credentials.JITP_MARK),
    )
    chain = [
        _signed(top, root.public_key(), top, root, now),
        _signed(middle, intermediate.public_key(), top, root, now),
        _signed(name(device_id), device.public_key(), middle, intermediate, now),
    ]
    pems = [one.public_bytes(serialization.Encoding.PEM).decode() for one in chain]
    bundle = pems[2] + pems[1]
    return {"caCert": pems[0], "clientCert": bundle, "privateKey": private_pem(device)}


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    by: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now).not_valid_after(now + _LIFE).sign(by, hashes.SHA256())


def association_routes(cloud: Cloud) -> list[Route]:
    """Return the routes that claim a device with its ownership code, and release it."""

    async def associate(request: Request) -> Response:
        principal = access.user(request, cloud)
        device_id = request.path_params["device_id"]
        if not is_device_id(device_id):
            raise refusals.invalid("that is no device id")
        code = (await request.body()).decode("utf-8", "replace").strip()
        known = registry(cloud).find(device_id)
        if known is not None:
            check_if_match(request, known["version"])
            if known["team"] != principal.team:
                raise refusals.DeviceCloudRefused(401, "owned by another account", code=40101)
            return accepted()
        owned = cloud.table("ownership").get(device_id.casefold())
        if owned is not None and owned["team"] != principal.team:
            raise refusals.DeviceCloudRefused(401, "owned by another account", code=40101)
        # The code of a device that got its certificate elsewhere is not known here.
        if not code or (
            owned is not None and not compare_digest(owned["code"].encode(), code.encode())
        ):
            raise refusals.DeviceCloudRefused(401, "the ownership code is wrong", code=40102)
        registry(cloud).create(principal.team, ip_device(device_id, "Generic"))
        return accepted()

    async def dissociate(request: Request) -> Response:
        principal = access.user(request, cloud)
        device_id = request.path_params["device_id"]
        known = registry(cloud).find(device_id)
        if known is None:
            raise refusals.DeviceCloudRefused(404, "device not found", code=40413)
        if known["team"] != principal.team:
            raise refusals.no_device(device_id)
        check_if_match(request, known["version"])
        registry(cloud).delete(known)
        return accepted()

    association = "/v1/association/{device_id}"
    return [
        Endpoint(association, associate, methods=["PUT"], name="AssociateDevice"),
        Endpoint(association, dissociate, methods=["DELETE"], name="DissociateDevice"),
    ]
