"""Claiming a device with its ownership code, and letting go of it."""

from __future__ import annotations

from secrets import compare_digest
from typing import TYPE_CHECKING

from agent.standin.core.dispatch import Endpoint
from agent.standin.device_cloud import access
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.onboarding.credentials_csv import is_device_id
from agent.standin.device_cloud.refusals import DeviceCloudRefused, invalid, no_device
from agent.standin.device_cloud.resource import accepted, check_if_match
from agent.standin.device_cloud.seed import ip_device

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of association."""

    async def associate(request: Request) -> Response:
        who = access.user(request, cloud)
        device_id = request.path_params["device_id"]
        if not is_device_id(device_id):
            raise invalid("that is no device id")
        code = (await request.body()).decode("utf-8", "replace").strip()
        known = registry(cloud).find(device_id)
        if known is not None:
            check_if_match(request, known["version"])
            if known["team"] != who.team:
                raise DeviceCloudRefused(401, "owned by another account", code=40101)
            return accepted()
        owned = cloud.table("ownership").get(device_id.casefold())
        if owned is not None and owned["team"] != who.team:
            raise DeviceCloudRefused(401, "owned by another account", code=40101)
        # The code of a device that got its certificate elsewhere is not known here.
        if not code or (
            owned is not None and not compare_digest(owned["code"].encode(), code.encode())
        ):
            raise DeviceCloudRefused(401, "the ownership code is wrong", code=40102)
        registry(cloud).create(who.team, ip_device(device_id, "Generic"))
        return accepted()

    async def dissociate(request: Request) -> Response:
        who = access.user(request, cloud)
        device_id = request.path_params["device_id"]
        known = registry(cloud).find(device_id)
        if known is None:
            raise DeviceCloudRefused(404, "device not found", code=40413)
        if known["team"] != who.team:
            raise no_device(device_id)
        check_if_match(request, known["version"])
        registry(cloud).delete(known)
        return accepted()

    association = "/v1/association/{device_id}"
    return [
        Endpoint(association, associate, methods=["PUT"], name="AssociateDevice"),
        Endpoint(association, dissociate, methods=["DELETE"], name="DissociateDevice"),
    ]
