"""Devices and messages: declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud.declared.shapes import BOTH, LIST, MOMENT, PAGES, TEXT, one
from agent.standin.operation import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.standin.operation import Operation
    from agent.standin.schema import Schema

VALUE: Schema = {
    "type": "array",
    "maxItems": 512,
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
}
_PART: Schema = {"type": ["object", "null"]}
_TRANSFORM = Parameter(
    name="transform",
    schema={"type": "string", "minLength": 1, "maxLength": 4096, "examples": ["id"]},
    description="A JSONata expression.",
)


def devices() -> Iterator[Operation]:
    """Yield the operations of devices and messages."""
    tag = "Devices"
    base = "/v1/devices/{device_id}"
    flag: Schema = {"type": "boolean"}
    texts: Schema = {"type": "array", "items": TEXT}
    yield one(
        "GET /v1/devices", "ListDevices", "The team's devices, page by page.", tag=tag,
        parameters=(
            Parameter(name="includeState", schema=flag),
            Parameter(name="includeStateMeta", schema=flag),
            Parameter(name="deviceTypes", schema=texts),
            Parameter(name="deviceIds", schema=texts),
            Parameter(name="tags", schema=texts),
            Parameter(name="subTypes", schema=texts),
            Parameter(name="firmwareSupport", schema=texts),
            Parameter(name="firmwareSupportExclude", schema=texts),
            Parameter(name="gatewayId", schema=TEXT),
            Parameter(name="deviceNameFuzzy", schema=TEXT),
            _TRANSFORM,
            *PAGES,
        ),
        answers={200: LIST},
    )  # fmt: skip
    yield one(
        f"GET {base}",
        "FetchDevice",
        "One device, or what a transform makes of it.",
        tag=tag,
        security=BOTH,
        parameters=(_TRANSFORM,),
        answers={200: {}},
    )
    yield one(f"DELETE {base}", "DeleteDevice", "Forget a device.", tag=tag, answers={202: None})
    yield one(
        f"PUT {base}/name",
        "UpdateDeviceName",
        "Rename a device.",
        tag=tag,
        body={"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\r\\n]+$"},
        answers={202: None},
    )
    yield one(
        f"PUT {base}/tags",
        "UpdateDeviceTags",
        "Replace a device's tags.",
        tag=tag,
        body={"type": "array", "items": {"type": "string", "pattern": "^[a-zA-Z0-9_.@:#-]+$"}},
        answers={202: None},
    )
    yield one(
        f"PATCH {base}/state",
        "UpdateDeviceState",
        "Merge into a device's state.",
        tag=tag,
        security=BOTH,
        body={
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {"reported": _PART, "desired": _PART},
        },
        answers={202: None},
    )
    value = base + "/characteristics/{characteristic_id}"
    yield one(
        f"GET {value}",
        "FetchCharacteristicValue",
        "The stored value.",
        tag=tag,
        answers={200: VALUE},
    )
    yield one(
        f"PUT {value}",
        "UpdateCharacteristicValue",
        "Write a value.",
        tag=tag,
        body=VALUE,
        answers={202: None},
    )
    yield one(
        f"GET {value}/descriptors/{{descriptor_id}}",
        "FetchDescriptorValue",
        "The stored value of a descriptor.",
        tag=tag,
        answers={200: VALUE},
    )
    yield one(
        f"PUT {value}/descriptors/{{descriptor_id}}",
        "UpdateDescriptorValue",
        "Write a descriptor's value.",
        tag=tag,
        body=VALUE,
        answers={202: None},
    )
    yield one(
        "POST /v1/devices/{gateway_id}/discover/{device_id}",
        "Discover",
        "Have the gateway rediscover the services of a BLE device.",
        tag=tag,
        changes=True,
        answers={202: None},
    )
    yield one(
        f"POST {base}/scan",
        "Scan",
        "Have the gateway look for BLE devices.",
        tag=tag,
        changes=True,
        answers={202: None},
    )
    yield one(
        "PUT /v1/devices/{gateway_id}/{device_id}",
        "AddBLEDevice",
        "Connect a BLE device through a gateway.",
        tag=tag,
        answers={204: None},
    )
    yield one(
        f"POST {base}/messages",
        "SendDeviceMessage",
        "Send a message in a device's name.",
        tag="Messages",
        security=BOTH,
        body={
            "type": "object",
            "required": ["message"],
            "properties": {"message": {"type": ["object", "array", "string"]}},
        },
        answers={202: None},
    )
    yield one(
        "GET /v1/messages", "ListMessages", "What devices sent.", tag="Messages",
        parameters=(
            Parameter(name="inclusiveStart", schema=MOMENT),
            Parameter(name="exclusiveEnd", schema=MOMENT),
            Parameter(name="deviceId", schema=TEXT),
            Parameter(name="appId", schema=TEXT),
            Parameter(name="topic", schema=TEXT),
            *PAGES,
        ),
        answers={200: LIST},
    )  # fmt: skip
