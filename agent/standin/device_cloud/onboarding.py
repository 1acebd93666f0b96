"""RegisterPublicKeys, RegisterCertificates, onboarding (clauses D9.3, D10.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.device_cloud import access, bodies, bulk
from agent.standin.device_cloud.credentials_csv import (
    KEYS,
    NEWCOMERS,
    BadKey,
    Table,
    is_device_id,
    read_text,
)
from agent.standin.device_cloud.refusals import DeviceCloudRefused, invalid
from agent.standin.device_cloud.registry import registry
from agent.standin.device_cloud.resource import accepted, arrived, check_if_match, read_json
from agent.standin.dispatch import Endpoint
from agent.standin.errors import JSON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


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
