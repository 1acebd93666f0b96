"""Account, devices and messages: declared."""

from __future__ import annotations

from collections.abc import Iterator

from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.declared import shapes
from agent.standin.device_cloud.devices.ble import VALUE
from agent.standin.device_cloud.devices.devices import MAX_EXPRESSION, NAME, STATE
from agent.standin.device_cloud.devices.messages import MESSAGE
from agent.standin.device_cloud.devices.registry import TAGS
from agent.standin.device_cloud.seed import BLE, GATEWAY, LED_CHARACTERISTIC

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
_CONNECTED = {"device_id": BLE, "gateway_id": GATEWAY, "characteristic_id": LED_CHARACTERISTIC}


def account() -> Iterator[Operation]:
    """Yield the operations of account and status."""
    tag = "Account"
    yield shapes.declare(
        "GET /v1/openapi.json",
        "Schema",
        "This document.",
        tag=tag,
        security=(),
        answers={200: shapes.OBJECT},
    )
    yield shapes.declare(
        "GET /v1/status",
        "FetchStatus",
        "Whether the service is up.",
        tag=tag,
        security=(),
        answers={200: shapes.OBJECT},
    )
    yield shapes.declare(
        "GET /v1/account",
        "FetchAccountInfo",
        "The team, its plan, the user's role.",
        tag=tag,
        answers={200: shapes.WHOLE},
    )
    yield shapes.declare(
        "GET /v1/account/service-token",
        "FetchServiceToken",
        "A service token; organization auth tokens replace it.",
        tag=tag,
        deprecated=True,
        answers={200: shapes.OBJECT},
    )
    yield shapes.declare(
        "POST /v1/account/service-key-and-token",
        "CreateServiceKeyAndToken",
        "A new service key in place of the old one.",
        tag=tag,
        deprecated=True,
        changes=True,
        parameters=(
            Parameter(
                name="service",
                schema={"type": "string", "enum": ["location", "fota", "device"]},
            ),
        ),
        answers={200: shapes.OBJECT},
    )


def devices() -> Iterator[Operation]:
    """Yield the operations of devices."""
    tag = "Devices"
    texts: Schema = {"type": "array", "items": shapes.TEXT}
    yield shapes.declare(
        "GET /v1/devices", "ListDevices", "The team's devices, page by page.", tag=tag,
        parameters=(
            Parameter(name="includeState", schema=shapes.FLAG),
            Parameter(name="includeStateMeta", schema=shapes.FLAG),
            Parameter(name="deviceTypes", schema=texts),
            Parameter(name="deviceIds", schema=texts),
            Parameter(name="tags", schema=texts),
            Parameter(name="subTypes", schema=texts),
            Parameter(name="firmwareSupport", schema=texts),
            Parameter(name="firmwareSupportExclude", schema=texts),
            Parameter(name="gatewayId", schema=shapes.TEXT),
            Parameter(name="deviceNameFuzzy", schema=shapes.TEXT),
            _TRANSFORM,
            *shapes.PAGES,
        ),
        answers={200: shapes.LIST},
    )  # fmt: skip
    yield shapes.declare(
        f"GET {_DEVICE}",
        "FetchDevice",
        "One device, or what a transform makes of it.",
        tag=tag,
        security=shapes.BOTH,
        parameters=(_TRANSFORM,),
        answers={200: {}},
    )
    yield shapes.declare(
        f"DELETE {_DEVICE}", "DeleteDevice", "Forget a device.", tag=tag, answers={202: None}
    )
    yield shapes.declare(
        f"PUT {_DEVICE}/name",
        "UpdateDeviceName",
        "Rename a device.",
        tag=tag,
        body=NAME,
        answers={202: None},
    )
    yield shapes.declare(
        f"PUT {_DEVICE}/tags",
        "UpdateDeviceTags",
        "Replace a device's tags.",
        tag=tag,
        body=TAGS,
        answers={202: None},
    )
    yield shapes.declare(
        f"PATCH {_DEVICE}/state",
        "UpdateDeviceState",
        "Merge into a device's state.",
        tag=tag,
        security=shapes.BOTH,
        body=STATE,
        refusals=(409,),
        answers={202: None},
    )


def ble() -> Iterator[Operation]:
    """Yield the operations of values of BLE devices."""
    tag = "Devices"
    value = _DEVICE + "/characteristics/{characteristic_id}"
    yield shapes.declare(
        f"GET {value}",
        "FetchCharacteristicValue",
        "The stored value.",
        tag=tag,
        seeded=_CONNECTED,
        answers={200: VALUE},
    )
    yield shapes.declare(
        f"PUT {value}",
        "UpdateCharacteristicValue",
        "Write a value.",
        tag=tag,
        seeded=_CONNECTED,
        body=VALUE,
        answers={202: None},
    )
    yield shapes.declare(
        f"GET {value}/descriptors/{{descriptor_id}}",
        "FetchDescriptorValue",
        "The stored value of a descriptor.",
        tag=tag,
        seeded=_CONNECTED,
        answers={200: VALUE},
    )
    yield shapes.declare(
        f"PUT {value}/descriptors/{{descriptor_id}}",
        "UpdateDescriptorValue",
        "Write a descriptor's value.",
        tag=tag,
        seeded=_CONNECTED,
        body=VALUE,
        answers={202: None},
    )


def gateways() -> Iterator[Operation]:
    """Yield the operations of gateways."""
    tag = "Devices"
    yield shapes.declare(
        "POST /v1/devices/{gateway_id}/discover/{device_id}",
        "Discover",
        "Have the gateway rediscover the services of a BLE device.",
        tag=tag,
        seeded=_CONNECTED,
        changes=True,
        answers={202: None},
    )
    yield shapes.declare(
        f"POST {_DEVICE}/scan",
        "Scan",
        "Have the gateway look for BLE devices.",
        tag=tag,
        seeded={"device_id": GATEWAY},
        changes=True,
        refusals=(409,),
        answers={202: None},
    )
    yield shapes.declare(
        "PUT /v1/devices/{gateway_id}/{device_id}",
        "AddBLEDevice",
        "Connect a BLE device through a gateway.",
        tag=tag,
        seeded=_CONNECTED,
        refusals=(409,),
        answers={204: None},
    )


def messages() -> Iterator[Operation]:
    """Yield the operations of messages."""
    yield shapes.declare(
        f"POST {_DEVICE}/messages",
        "SendDeviceMessage",
        "Send a message in a device's name.",
        tag="Messages",
        security=shapes.BOTH,
        body=MESSAGE,
        answers={202: None},
    )
    yield shapes.declare(
        "GET /v1/messages", "ListMessages", "What devices sent.", tag="Messages",
        parameters=(
            Parameter(name="inclusiveStart", schema=shapes.MOMENT),
            Parameter(name="exclusiveEnd", schema=shapes.MOMENT),
            Parameter(name="deviceId", schema=shapes.TEXT),
            Parameter(name="appId", schema=shapes.TEXT),
            Parameter(name="topic", schema=shapes.TEXT),
            *shapes.PAGES,
        ),
        answers={200: shapes.LIST},
    )  # fmt: skip
