"""Devices: listed, read, transformed and changed (clauses D4, D5, D9.1)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from agent.standin.core.operation import Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.core.serving import Query
from agent.standin.device_cloud import refusals
from agent.standin.device_cloud.access import DEVICE
from agent.standin.device_cloud.devices.jsonata_engine import Engine, EngineBusy, ExpressionFailed
from agent.standin.device_cloud.devices.registry import TAGS, Record, merge, registry, timestamps
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.resource import accepted, answer_one
from agent.standin.device_cloud.shapes import FLAG, LIST, TEXT, TEXTS
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


async def _list_devices(context: Context) -> Response:
    query, devices = context.query, registry(context.cloud)
    expression = query.get("transform")
    wanted = _filter(query)
    matching = (record for record in devices.walk(context.team) if wanted(record))
    records, rest = context.page().cut(matching)
    if expression is None:
        state = query.get("includeState", False)
        metadata = query.get("includeStateMeta", False)
        items = [devices.to_resource(r, state=state, metadata=metadata) for r in records]
    else:
        whole = [devices.to_resource(record) for record in records]
        items = await transform(context.cloud, expression, whole)
    return JSON({"items": items, **rest})


async def _fetch_device(context: Context) -> Response:
    devices = registry(context.cloud)
    device = devices.to_resource(devices.get(context.team, context.path["device_id"]))
    expression = context.query.get("transform")
    if expression is None:
        return answer_one(device)
    (result,) = await transform(context.cloud, expression, [device])
    return JSON(result, headers={"ETag": device["$meta"]["version"]})


async def transform(cloud: Cloud, expression: str, devices: list[Any]) -> list[Any]:
    """Return the result for each device, in order; null where the expression yields nothing."""
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


def _filter(query: Query) -> Callable[[Record], bool]:
    """Return the predicate that the filters of the query make."""
    tags = set(query.get("tags", ()))
    named = (*query.get("deviceIds", ()), *query.get("deviceIdentifiers", ()))
    ids = {text.casefold() for text in named}
    types = {text.casefold() for text in query.get("deviceTypes", ())}
    sub_types = set(query.get("subTypes", ()))
    firmware = set(query.get("firmwareSupport", ()))
    without = set(query.get("firmwareSupportExclude", ()))
    gateway = query.get("gatewayId")
    name = query.get("deviceNameFuzzy", "").casefold()

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


async def _rename(context: Context) -> Response:
    record = _device_to_change(context)
    name = context.body
    if isinstance(name, list):
        (name,) = name
    registry(context.cloud).change(record, {**record["fields"], "name": name})
    return accepted()


async def _retag(context: Context) -> Response:
    record = _device_to_change(context)
    tags = list(dict.fromkeys(context.body))
    registry(context.cloud).change(record, {**record["fields"], "tags": tags})
    return accepted()


async def _update_state(context: Context) -> Response:
    record = _device_to_change(context)
    change = context.body
    if record["fields"]["type"] == "BLE":
        raise refusals.DeviceCloudRefused(
            409, "the state of a BLE device is its services: write those"
        )
    _merge_state(context.cloud, record, change)
    return accepted()


async def _delete(context: Context) -> Response:
    registry(context.cloud).delete(_device_to_change(context))
    return accepted()


def _device_to_change(context: Context) -> Record:
    """Return the device of the path, once it may be changed."""
    record = registry(context.cloud).get(context.team, context.path["device_id"])
    context.check_if_match(record["version"])
    return record


def _merge_state(cloud: Cloud, record: Record, change: dict[str, Any]) -> None:
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


_TRANSFORM = Parameter(
    name="transform",
    schema={
        "type": "string",
        "format": "jsonata",
        "minLength": 1,
        "maxLength": MAX_EXPRESSION,
        "examples": ["id"],
    },
    description="A JSONata expression; one that is none, or that ends in an error, is 400.",
)
_DEVICE = "/v1/devices/{device_id}"
OPERATIONS = (
    declare(
        "GET /v1/devices", "ListDevices", "The team's devices, page by page.", _list_devices,
        tag="Devices",
        parameters=(
            Parameter(name="includeState", schema=FLAG),
            Parameter(name="includeStateMeta", schema=FLAG),
            Parameter(name="deviceTypes", schema=TEXTS),
            Parameter(name="deviceIds", schema=TEXTS),
            Parameter(name="deviceIdentifiers", schema=TEXTS),
            Parameter(name="tags", schema=TEXTS),
            Parameter(name="subTypes", schema=TEXTS),
            Parameter(name="firmwareSupport", schema=TEXTS),
            Parameter(name="firmwareSupportExclude", schema=TEXTS),
            Parameter(name="gatewayId", schema=TEXT),
            Parameter(name="deviceNameFuzzy", schema=TEXT),
            _TRANSFORM,
            *PAGES,
        ),
        answers={200: LIST},
    ),
    declare(
        f"GET {_DEVICE}", "FetchDevice", "One device, or what a transform makes of it.",
        _fetch_device, tag="Devices", access=DEVICE, parameters=(_TRANSFORM,), answers={200: {}},
    ),
    declare(
        f"DELETE {_DEVICE}", "DeleteDevice", "Forget a device.", _delete,
        tag="Devices", answers={202: None},
    ),
    declare(
        f"PUT {_DEVICE}/name", "UpdateDeviceName", "Rename a device.", _rename,
        tag="Devices", body=NAME, answers={202: None},
    ),
    declare(
        f"PUT {_DEVICE}/tags", "UpdateDeviceTags", "Replace a device's tags.", _retag,
        tag="Devices", body=TAGS, answers={202: None},
    ),
    declare(
        f"PATCH {_DEVICE}/state", "UpdateDeviceState", "Merge into a device's state.",
        _update_state, tag="Devices", access=DEVICE, body=STATE, refusals=(409,),
        answers={202: None},
    ),
)  # fmt: skip
