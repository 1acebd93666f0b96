"""ListDevices and FetchDevice (clauses D4, D5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud import access, paging, transform
from agent.standin.device_cloud.registry import Record, registry
from agent.standin.device_cloud.resource import answer_one
from agent.standin.dispatch import Endpoint
from agent.standin.errors import JSON

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes that read devices."""

    async def list_devices(request: Request) -> Response:
        who = access.user(request, cloud)
        devices = registry(cloud)
        expression = request.query_params.get("transform")
        state = paging.boolean(request, "includeState", default=False)
        metadata = paging.boolean(request, "includeStateMeta", default=False)
        wanted = _filter(request)
        page = paging.page(request)
        found = (record for record in devices.walk(who.team) if wanted(record))
        records, rest = page.cut(found)
        if expression is None:
            items = [devices.present(r, state=state, metadata=metadata) for r in records]
        else:
            whole = [devices.present(record) for record in records]
            items = await transform.apply(cloud, expression, whole)
        return JSON({"items": items, **rest})

    async def fetch_device(request: Request) -> Response:
        device_id = request.path_params["device_id"]
        who = access.user_or_device(request, cloud, device_id, "device")
        devices = registry(cloud)
        device = devices.present(devices.get(who.team, device_id))
        expression = request.query_params.get("transform")
        if expression is None:
            return answer_one(device)
        (result,) = await transform.apply(cloud, expression, [device])
        return JSON(result, headers={"ETag": device["$meta"]["version"]})

    return [
        Endpoint("/v1/devices", list_devices, methods=["GET"], name="ListDevices"),
        Endpoint("/v1/devices/{device_id}", fetch_device, methods=["GET"], name="FetchDevice"),
    ]


def _filter(request: Request) -> Callable[[Record], bool]:
    """Return the test that the query's filters make of a device."""
    tags = set(paging.listed(request, "tags"))
    ids = {text.casefold() for text in paging.listed(request, "deviceIds", "deviceIdentifiers")}
    types = {text.casefold() for text in paging.listed(request, "deviceTypes")}
    sub_types = set(paging.listed(request, "subTypes"))
    firmware = set(paging.listed(request, "firmwareSupport"))
    without = set(paging.listed(request, "firmwareSupportExclude"))
    gateway = request.query_params.get("gatewayId")
    name = request.query_params.get("deviceNameFuzzy", "").casefold()

    def wanted(record: Record) -> bool:
        fields = record["fields"]
        supports = set(fields["firmware"]["supports"])
        return (
            (not tags or not tags.isdisjoint(fields["tags"]))
            and (not ids or fields["id"].casefold() in ids)
            and (not types or fields["type"].casefold() in types)
            and (not sub_types or fields.get("subType") in sub_types)
            and (not firmware or not firmware.isdisjoint(supports))
            and without.isdisjoint(supports)
            and (gateway is None or fields.get("gatewayId") == gateway)
            and name in fields["name"].casefold()
        )

    return wanted
