"""Devices: listed, read, transformed and changed (clauses D4, D5, D9.1)."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core.operation import Parameter, in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import TEXT, Schema
from agent.standin.core.serving import Query
from agent.standin.device_cloud import refusals
from agent.standin.device_cloud.access import DEVICE
from agent.standin.device_cloud.devices.jsonata_engine import Engine, EngineBusy, ExpressionFailed
from agent.standin.device_cloud.devices.registry import (
    TAGS,
    device_to_change,
    merge,
    own_device,
    registry,
    timestamps,
)
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.resource import Resource, accepted, answer_one
from agent.standin.device_cloud.shapes import FLAG, TEXTS, list_of, of, resource
from agent.standin.device_cloud.tables import Device, DeviceFields
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
        return JSON(
            {
                "items": [devices.to_resource(r, state=state, metadata=metadata) for r in records],
                **rest,
            }
        )
    items = await transform(context.cloud, expression, [devices.to_resource(r) for r in records])
    return JSON({"items": items, **rest})


async def _fetch_device(context: Context) -> Response:
    device = registry(context.cloud).to_resource(own_device(context))
    expression = context.query.get("transform")
    if expression is None:
        return answer_one(device)
    (result,) = await transform(context.cloud, expression, [device])
    return JSON(result, headers={"ETag": device.version})


async def transform(
    cloud: Cloud, expression: str, devices: Sequence[Resource]
) -> list[msgspec.Raw]:
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


def _filter(query: Query) -> Callable[[Device], bool]:
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

    def wanted(device: Device) -> bool:
        fields = device.fields
        supports = set(fields.firmware.supports)
        return (
            (not tags or not tags.isdisjoint(fields.tags))
            and (not ids or fields.id.casefold() in ids)
            and (not types or fields.type.casefold() in types)
            and (not sub_types or fields.sub_type in sub_types)
            and (not firmware or not firmware.isdisjoint(supports))
            and without.isdisjoint(supports)
            and (gateway is None or fields.gateway_id == gateway)
            and name in fields.name.casefold()
        )

    return wanted


async def _rename(context: Context) -> Response:
    device = device_to_change(context)
    name = context.body
    if isinstance(name, list):
        (name,) = name
    device.fields.name = name
    registry(context.cloud).change(device)
    return accepted()


async def _retag(context: Context) -> Response:
    device = device_to_change(context)
    device.fields.tags = list(dict.fromkeys(context.body))
    registry(context.cloud).change(device)
    return accepted()


async def _update_state(context: Context) -> Response:
    device = device_to_change(context)
    if device.fields.type == "BLE":
        raise refusals.DeviceCloudRefused(
            409, "the state of a BLE device is its services: write those"
        )
    _merge_state(context.cloud, device, context.body)
    return accepted()


async def _delete(context: Context) -> Response:
    registry(context.cloud).delete(device_to_change(context))
    return accepted()


def _merge_state(cloud: Cloud, device: Device, change: Mapping[str, JSONValue]) -> None:
    now = int(cloud.clock.time())
    state = device.fields.state = merge(device.fields.state, change)
    state["metadata"] = merge(state.get("metadata"), timestamps(change, now))
    version = state.get("version")
    state["version"] = version + 1 if isinstance(version, int) else 1
    supports = state.get("reported")
    for step in ("device", "serviceInfo", "fota_v2"):
        supports = supports.get(step) if isinstance(supports, dict) else None
    if isinstance(supports, list):
        device.fields.firmware.supports = [text for text in supports if isinstance(text, str)]
    registry(cloud).change(device)
    if device.fields.type == "Gateway":
        registry(cloud).sync_connections(device.fields.id)


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
_SHOWN: Schema = {
    "anyOf": [
        resource(
            *("subType", "gatewayId", "cloudMqttEnabled", "state"),
            **of(DeviceFields)["properties"],
            tenantId=TEXT,
        ),
        {"description": "Whatever the transform yields."},
    ]
}
OPERATIONS = (
    declare(
        "GET /v1/devices", "ListDevices", "The team's devices, page by page.", _list_devices,
        tag="Devices",
        parameters=(
            *in_query(includeState=FLAG, includeStateMeta=FLAG),
            *in_query(deviceTypes=TEXTS, deviceIds=TEXTS, deviceIdentifiers=TEXTS, tags=TEXTS),
            *in_query(subTypes=TEXTS, firmwareSupport=TEXTS, firmwareSupportExclude=TEXTS),
            *in_query(gatewayId=TEXT, deviceNameFuzzy=TEXT),
            _TRANSFORM,
            *PAGES,
        ),
        answers={200: list_of(_SHOWN)},
    ),
    declare(
        f"GET {_DEVICE}", "FetchDevice", "One device, or what a transform makes of it.",
        _fetch_device, tag="Devices", access=DEVICE, parameters=(_TRANSFORM,),
        answers={200: _SHOWN},
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
