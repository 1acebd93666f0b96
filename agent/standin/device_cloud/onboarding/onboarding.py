"""RegisterPublicKeys, RegisterCertificates, onboarding (clauses D9.3, D10.8)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.device_cloud import access, bodies
from agent.standin.device_cloud.devices import bulk
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.onboarding.credentials_csv import (
    KEYS,
    NEWCOMERS,
    BadKey,
    Table,
    is_device_id,
    read_text,
)
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, invalid
from agent.standin.device_cloud.resource import accepted, arrived, check_if_match, read_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


_LIFE = dt.timedelta(days=365 * 20)
_LONGEST_CODE = 128


def jitp_routes(cloud: Cloud) -> list[Route]:
    """Return the one route."""

    async def create(request: Request) -> Response:
        from agent.standin.device_cloud.onboarding.device_keys import register

        who = access.user(request, cloud)
        device_id = request.path_params["device_id"]
        if not is_device_id(device_id):
            raise invalid("that is no device id")
        code = (await request.body()).decode("utf-8", "replace").strip()
        if not 1 <= len(code) <= _LONGEST_CODE:
            raise bad_request("the body is the ownership code")
        made = _certificate(device_id, cloud.clock.now())
        try:
            register(cloud, who.team, device_id, made["clientCert"])
        except BadKey as error:
            raise DeviceCloudRefused(400, str(error), code=40001) from error
        cloud.table("ownership").put(device_id.casefold(), {"team": who.team, "code": code})
        return JSON({"clientId": device_id, **made}, 201)

    path = "/v1/devices/{device_id}/certificates"
    return [Endpoint(path, create, methods=["POST"], name="CreateDeviceCertificate")]


def _certificate(device_id: str, now: dt.datetime) -> dict[str, str]:
    """Return the CA, the bundle of device and intermediate certificate, and the private key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    from agent.standin.device_cloud.onboarding.device_keys import JITP_MARK

    root, intermediate, device = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))

    def name(common: str, unit: str = "") -> x509.Name:
        units = [x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common[:64]), *units])

    top, middle = name("Stand-in root, test only"), name("Stand-in, test only", JITP_MARK)
    chain = [
        _signed(top, root.public_key(), top, root, now),
        _signed(middle, intermediate.public_key(), top, root, now),
        _signed(name(device_id), device.public_key(), middle, intermediate, now),
    ]
    pems = [one.public_bytes(serialization.Encoding.PEM).decode() for one in chain]
    private = device.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {"caCert": pems[0], "clientCert": pems[2] + pems[1], "privateKey": private.decode()}


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    by: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now).not_valid_after(now + _LIFE).sign(by, hashes.SHA256())


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes that bring devices in."""

    def from_csv(endpoint: str, table: Table) -> Callable[[Request], Awaitable[Response]]:
        async def accept(request: Request) -> Response:
            who = access.user(request, cloud)
            text = await read_text(request)
            table.rows(text)
            return JSON({"bulkOpsRequestId": bulk.start(cloud, who.team, endpoint, text)}, 202)

        return accept

    async def onboard_one(request: Request) -> Response:
        who = access.user(request, cloud)
        await arrived(request)
        device_id = request.path_params["device_id"]
        known = registry(cloud).find(device_id)
        if known is not None and known["team"] == who.team:
            check_if_match(request, known["version"])
        newcomer = _newcomer(device_id, await read_json(request, bodies.NEWCOMER))
        try:
            bulk.onboard(cloud, who.team, newcomer)
        except BadKey as error:
            raise DeviceCloudRefused(400, str(error), code=40001) from error
        return accepted()

    return [
        Endpoint(
            "/v1/devices/public-keys",
            from_csv("REGISTER_PUBLIC_KEYS", KEYS),
            methods=["POST"],
            name="RegisterPublicKeys",
        ),
        Endpoint(
            "/v1/devices/certificates",
            from_csv("REGISTER_CERTIFICATES", KEYS),
            methods=["POST"],
            name="RegisterCertificates",
        ),
        Endpoint(
            "/v1/devices",
            from_csv("ONBOARD_DEVICES", NEWCOMERS),
            methods=["POST"],
            name="OnboardDevices",
        ),
        Endpoint("/v1/devices/{device_id}", onboard_one, methods=["POST"], name="OnboardDevice"),
    ]


def _newcomer(device_id: str, body: dict[str, Any]) -> bulk.Newcomer:
    if not is_device_id(device_id):
        raise invalid("that is no device id")
    pem = body.get("certificate", body.get("onboardingToken"))
    assert isinstance(pem, str)
    firmware = body.get("supportedFirmwareTypes", [])
    return bulk.Newcomer(device_id, pem, body.get("subType", ""), body.get("tags", []), firmware)
