"""Devices and messages: declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.core.operation import Parameter
from agent.standin.device_cloud import bodies
from agent.standin.device_cloud.declared.shapes import (
    BOTH,
    FLAG,
    LIST,
    MOMENT,
    PAGES,
    TEXT,
    one,
)
from agent.standin.device_cloud.devices.devices import LONGEST
from agent.standin.device_cloud.seed import BLE, GATEWAY, LED_CHARACTERISTIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.standin.core.operation import Operation
    from agent.standin.core.schema import Schema

_TRANSFORM = Parameter(
    name="transform",
    schema={
        "type": "string",
        "format": "jsonata",
        "minLength": 1,
        "maxLength": LONGEST,
        "examples": ["id"],
    },
    description="A JSONata expression; one that is none, or that ends in an error, is 400.",
)


def devices() -> Iterator[Operation]:
    """Yield the operations of devices and messages."""
    tag = "Devices"
    base = "/v1/devices/{device_id}"
    texts: Schema = {"type": "array", "items": TEXT}
    yield one(
        "GET /v1/devices", "ListDevices", "The team's devices, page by page.", tag=tag,
        parameters=(
            Parameter(name="includeState", schema=FLAG),
            Parameter(name="includeStateMeta", schema=FLAG),
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
        body=bodies.NAME,
        answers={202: None},
    )
    yield one(
        f"PUT {base}/tags",
        "UpdateDeviceTags",
        "Replace a device's tags.",
        tag=tag,
        body=bodies.TAGS,
        answers={202: None},
    )
    yield one(
        f"PATCH {base}/state",
        "UpdateDeviceState",
        "Merge into a device's state.",
        tag=tag,
        security=BOTH,
        body=bodies.STATE,
        refusals=(409,),
        answers={202: None},
    )
    value = base + "/characteristics/{characteristic_id}"
    bulb = {"device_id": BLE, "gateway_id": GATEWAY, "characteristic_id": LED_CHARACTERISTIC}
    yield one(
        f"GET {value}",
        "FetchCharacteristicValue",
        "The stored value.",
        tag=tag,
        seeded=bulb,
        answers={200: bodies.VALUE},
    )
    yield one(
        f"PUT {value}",
        "UpdateCharacteristicValue",
        "Write a value.",
        tag=tag,
        seeded=bulb,
        body=bodies.VALUE,
        answers={202: None},
    )
    yield one(
        f"GET {value}/descriptors/{{descriptor_id}}",
        "FetchDescriptorValue",
        "The stored value of a descriptor.",
        tag=tag,
        seeded=bulb,
        answers={200: bodies.VALUE},
    )
    yield one(
        f"PUT {value}/descriptors/{{descriptor_id}}",
        "UpdateDescriptorValue",
        "Write a descriptor's value.",
        tag=tag,
        seeded=bulb,
        body=bodies.VALUE,
        answers={202: None},
    )
    yield one(
        "POST /v1/devices/{gateway_id}/discover/{device_id}",
        "Discover",
        "Have the gateway rediscover the services of a BLE device.",
        tag=tag,
        seeded=bulb,
        changes=True,
        answers={202: None},
    )
    yield one(
        f"POST {base}/scan",
        "Scan",
        "Have the gateway look for BLE devices.",
        tag=tag,
        seeded={"device_id": GATEWAY},
        changes=True,
        refusals=(409,),
        answers={202: None},
    )
    yield one(
        "PUT /v1/devices/{gateway_id}/{device_id}",
        "AddBLEDevice",
        "Connect a BLE device through a gateway.",
        tag=tag,
        seeded=bulb,
        refusals=(409,),
        answers={204: None},
    )
    yield one(
        f"POST {base}/messages",
        "SendDeviceMessage",
        "Send a message in a device's name.",
        tag="Messages",
        security=BOTH,
        body=bodies.MESSAGE,
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
