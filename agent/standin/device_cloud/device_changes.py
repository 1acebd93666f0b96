"""The changes of a device: name, tags, state, deletion (clauses D5.2, D9.1)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from agent.standin.device_cloud import access, bodies
from agent.standin.device_cloud.refusals import DeviceCloudRefused
from agent.standin.device_cloud.registry import Record, registry
from agent.standin.device_cloud.resource import accepted, arrived, check_if_match, read_json
from agent.standin.device_cloud.shadow import merge, stamps
from agent.standin.dispatch import Endpoint

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes that change devices."""

    async def rename(request: Request) -> Response:
        record = await _changed_by_user(request, cloud)
        name = await read_json(request, bodies.NAME)
        if isinstance(name, list):
            (name,) = name
        registry(cloud).change(record, {**record["fields"], "name": name})
        return accepted()

    async def retag(request: Request) -> Response:
        record = await _changed_by_user(request, cloud)
        tags = await read_json(request, bodies.TAGS)
        registry(cloud).change(record, {**record["fields"], "tags": list(dict.fromkeys(tags))})
        return accepted()

    async def update_state(request: Request) -> Response:
        device_id = request.path_params["device_id"]
        who = access.user_or_device(request, cloud, device_id, "device")
        await arrived(request)
        record = registry(cloud).get(who.team, device_id)
        check_if_match(request, record["version"])
        change = await read_json(request, bodies.STATE)
        if record["fields"]["type"] == "BLE":
            raise DeviceCloudRefused(409, "the state of a BLE device is its services: write those")
        _update_state(cloud, record, change)
        return accepted()

    async def delete(request: Request) -> Response:
        record = await _changed_by_user(request, cloud)
        registry(cloud).delete(record)
        return accepted()

    one = "/v1/devices/{device_id}"
    return [
        Endpoint(one, delete, methods=["DELETE"], name="DeleteDevice"),
        Endpoint(one + "/name", rename, methods=["PUT"], name="UpdateDeviceName"),
        Endpoint(one + "/tags", retag, methods=["PUT"], name="UpdateDeviceTags"),
        Endpoint(one + "/state", update_state, methods=["PATCH"], name="UpdateDeviceState"),
    ]


async def _changed_by_user(request: Request, cloud: Cloud) -> Record:
    """Return the device that a user changes, once it may be changed."""
    who = access.user(request, cloud)
    await arrived(request)
    record = registry(cloud).get(who.team, request.path_params["device_id"])
    check_if_match(request, record["version"])
    return record


def _update_state(cloud: Cloud, record: Record, change: dict[str, Any]) -> None:
    fields = copy.deepcopy(record["fields"])
    state = fields["state"]
    now = int(cloud.clock.time())
    for part, content in change.items():
        state[part] = merge(state.get(part, {}), content or {})
        metadata = state.setdefault("metadata", {})
        metadata[part] = merge(metadata.get(part, {}), stamps(content or {}, now))
    state["version"] = int(state.get("version", 0)) + 1
    supports = state.get("reported", {})
    for step in ("device", "serviceInfo", "fota_v2"):
        supports = supports.get(step) if isinstance(supports, dict) else None
    if isinstance(supports, list):
        fields["firmware"]["supports"] = [text for text in supports if isinstance(text, str)]
    registry(cloud).change(record, fields)
    if fields["type"] == "Gateway":
        registry(cloud).agree(fields["id"])
