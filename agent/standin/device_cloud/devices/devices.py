"""Devices: listed, read, transformed and changed (clauses D4, D5, D9.1)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import access, paging, refusals, resource
from agent.standin.device_cloud.devices.jsonata_engine import Engine, EngineBusy, ExpressionFailed
from agent.standin.device_cloud.devices.registry import TAGS, Record, merge, registry, timestamps
from agent.standin.state import Cloud

_LINE: Schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\r\\n]+$"}
_PART: Schema = {"type": ["object", "null"]}
NAME: Schema = {
    "anyOf": [_LINE, {"type": "array", "minItems": 1, "maxItems": 1, "items": _LINE}],
    "description": "A text, or, as vendor scripts send it, a list of one.",
}
STATE: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {"reported": _PART, "desired": _PART},
}
MAX_EXPRESSION = 4096
"""Characters of an expression."""


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes that read devices."""

    async def list_devices(request: Request) -> Response:
        principal = access.user(request, cloud)
        devices = registry(cloud)
        expression = request.query_params.get("transform")
        state = paging.boolean(request, "includeState", default=False)
        metadata = paging.boolean(request, "includeStateMeta", default=False)
        wanted = _filter(request)
        page = paging.page(request)
        matching = (record for record in devices.walk(principal.team) if wanted(record))
        records, rest = page.cut(matching)
        if expression is None:
            items = [devices.to_resource(r, state=state, metadata=metadata) for r in records]
        else:
            whole = [devices.to_resource(record) for record in records]
            items = await transform(cloud, expression, whole)
        return JSON({"items": items, **rest})

    async def fetch_device(request: Request) -> Response:
        device_id = request.path_params["device_id"]
        principal = access.user_or_device(request, cloud, device_id, "device")
        devices = registry(cloud)
        device = devices.to_resource(devices.get(principal.team, device_id))
        expression = request.query_params.get("transform")
        if expression is None:
            return resource.answer_one(device)
        (result,) = await transform(cloud, expression, [device])
        return JSON(result, headers={"ETag": device["$meta"]["version"]})

    return [
        Endpoint("/v1/devices", list_devices, methods=["GET"], name="ListDevices"),
        Endpoint("/v1/devices/{device_id}", fetch_device, methods=["GET"], name="FetchDevice"),
    ]


async def transform(cloud: Cloud, expression: str, devices: list[Any]) -> list[Any]:
    """Return the result for each device, in order; null where the expression yields nothing."""
    if len(expression) > MAX_EXPRESSION:
        raise refusals.bad_request(f"a transform is {MAX_EXPRESSION} characters at most")
    if not expression.strip():
        raise refusals.bad_request("the transform is empty")

    def start() -> Engine:
        engine = Engine()
        cloud.on_close.append(engine.close)
        return engine

    engine = cloud.transient(Engine, start)
    try:
        results = await engine.evaluate(expression, msgspec.json.encode(devices))
    except ExpressionFailed as error:
        raise refusals.bad_request(f"the transform failed: {error}") from error
    except EngineBusy as error:
        raise refusals.DeviceCloudRefused(429, str(error), headers={"Retry-After": "5"}) from error
    # Already JSON: what the worker wrote is sent unchanged.
    return [msgspec.Raw(result) for result in results]


def _filter(request: Request) -> Callable[[Record], bool]:
    """Return the predicate that the filters of the query make."""
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


def change_routes(cloud: Cloud) -> list[Route]:
    """Return the routes that change devices."""

    async def rename(request: Request) -> Response:
        record = await _device_to_change(request, cloud)
        name = await resource.read_json(request, NAME)
        if isinstance(name, list):
            (name,) = name
        registry(cloud).change(record, {**record["fields"], "name": name})
        return resource.accepted()

    async def retag(request: Request) -> Response:
        record = await _device_to_change(request, cloud)
        tags = await resource.read_json(request, TAGS)
        registry(cloud).change(record, {**record["fields"], "tags": list(dict.fromkeys(tags))})
        return resource.accepted()

    async def update_state(request: Request) -> Response:
        device_id = request.path_params["device_id"]
        principal = access.user_or_device(request, cloud, device_id, "device")
        await resource.receive_body(request)
        record = registry(cloud).get(principal.team, device_id)
        resource.check_if_match(request, record["version"])
        change = await resource.read_json(request, STATE)
        if record["fields"]["type"] == "BLE":
            raise refusals.DeviceCloudRefused(
                409, "the state of a BLE device is its services: write those"
            )
        _update_state(cloud, record, change)
        return resource.accepted()

    async def delete(request: Request) -> Response:
        record = await _device_to_change(request, cloud)
        registry(cloud).delete(record)
        return resource.accepted()

    one = "/v1/devices/{device_id}"
    return [
        Endpoint(one, delete, methods=["DELETE"], name="DeleteDevice"),
        Endpoint(one + "/name", rename, methods=["PUT"], name="UpdateDeviceName"),
        Endpoint(one + "/tags", retag, methods=["PUT"], name="UpdateDeviceTags"),
        Endpoint(one + "/state", update_state, methods=["PATCH"], name="UpdateDeviceState"),
    ]


async def _device_to_change(request: Request, cloud: Cloud) -> Record:
    """Return the device that a user changes, once it may be changed."""
    principal = access.user(request, cloud)
    await resource.receive_body(request)
    record = registry(cloud).get(principal.team, request.path_params["device_id"])
    resource.check_if_match(request, record["version"])
    return record


def _update_state(cloud: Cloud, record: Record, change: dict[str, Any]) -> None:
    fields = copy.deepcopy(record["fields"])
    state = fields["state"]
    now = int(cloud.clock.time())
    for part, content in change.items():
        state[part] = merge(state.get(part, {}), content or {})
        metadata = state.setdefault("metadata", {})
        metadata[part] = merge(metadata.get(part, {}), timestamps(content or {}, now))
    state["version"] = int(state.get("version", 0)) + 1
    supports = state.get("reported", {})
    for step in ("device", "serviceInfo", "fota_v2"):
        supports = supports.get(step) if isinstance(supports, dict) else None
    if isinstance(supports, list):
        fields["firmware"]["supports"] = [text for text in supports if isinstance(text, str)]
    registry(cloud).change(record, fields)
    if fields["type"] == "Gateway":
        registry(cloud).sync_connections(fields["id"])
