"""BLE devices behind a gateway: values, discovery, adding (clauses D6, D7, D3)."""

import msgspec
from starlette.responses import Response

from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import seed
from agent.standin.device_cloud.devices.registry import (
    device_to_change,
    own_device,
    registry,
    services,
)
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.refusals import DeviceCloudRefused, no_device, not_found
from agent.standin.device_cloud.resource import accepted
from agent.standin.device_cloud.tables import Characteristic, Descriptor, Device, Service

# The longest attribute value: Bluetooth Core, volume 3, part F, 3.2.9.
VALUE: Schema = {
    "type": "array",
    "maxItems": 512,
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
}


async def _read_value(context: Context) -> Response:
    record = own_device(context)
    found = _attribute(services(record), context.path)
    return JSON(found.value, headers={"ETag": record.version})


async def _write_value(context: Context) -> Response:
    record = own_device(context)
    known = services(record)
    found = _attribute(known, context.path)
    context.check_if_match(record.version)
    content = context.body
    if isinstance(found, Characteristic) and not found.is_writable:
        raise DeviceCloudRefused(409, "the properties of the characteristic allow no write")
    found.value = [int(byte) for byte in content]
    record.fields.state = msgspec.to_builtins(known)
    registry(context.cloud).change(record)
    return accepted()


async def _discover(context: Context) -> Response:
    gateway = _gateway(context, context.path["gateway_id"])
    child = own_device(context)
    if child.fields.gateway_id != gateway.fields.id:
        raise no_device(context.path["device_id"])
    context.check_if_match(child.version)
    registry(context.cloud).schedule_discovery(child)
    return accepted()


async def _scan(context: Context) -> Response:
    gateway = device_to_change(context)
    if gateway.fields.type != "Gateway":
        raise DeviceCloudRefused(409, "the device is no gateway: it cannot look for others")
    return accepted()


async def _add(context: Context) -> Response:
    devices, device_id = registry(context.cloud), context.path["device_id"]
    gateway = _gateway(context, context.path["gateway_id"])
    context.check_if_match(gateway.version)
    taken = devices.find(device_id)
    if taken is None:
        devices.create(context.team, seed.ble_device(device_id, gateway.fields.id))
        devices.sync_connections(gateway.fields.id)
    elif taken.fields.gateway_id != gateway.fields.id:
        raise DeviceCloudRefused(409, "a device of that id is connected elsewhere")
    return Response(status_code=204)


def _gateway(context: Context, gateway_id: str) -> Device:
    gateway = registry(context.cloud).get(context.team, gateway_id)
    if gateway.fields.type != "Gateway":
        raise not_found(f"device {gateway_id[:128]!r} is no gateway")
    return gateway


def _attribute(known: dict[str, Service], path: dict[str, str]) -> Characteristic | Descriptor:
    """Return the characteristic, or the descriptor, that a path names by UUID or by its path."""
    wanted = path["characteristic_id"].casefold()
    for service in known.values():
        for found in service.characteristics.values():
            if wanted in {found.uuid.casefold(), found.path.casefold()}:
                return _descriptor(found, path.get("descriptor_id"))
    raise not_found(f"no characteristic {path['characteristic_id'][:128]!r}")


def _descriptor(characteristic: Characteristic, wanted: str | None) -> Characteristic | Descriptor:
    if wanted is None:
        return characteristic
    for found in characteristic.descriptors.values():
        if wanted.casefold() in {found.uuid.casefold(), found.path.casefold()}:
            return found
    raise not_found(f"no descriptor {wanted[:128]!r}")


_CONNECTED = {
    "device_id": seed.BLE,
    "gateway_id": seed.GATEWAY,
    "characteristic_id": seed.LED_CHARACTERISTIC,
}
_CHARACTERISTIC = "/v1/devices/{device_id}/characteristics/{characteristic_id}"
_DESCRIPTOR = _CHARACTERISTIC + "/descriptors/{descriptor_id}"
OPERATIONS = (
    declare(
        f"GET {_CHARACTERISTIC}", "FetchCharacteristicValue", "The stored value.", _read_value,
        tag="Devices", examples=_CONNECTED, answers={200: VALUE},
    ),
    declare(
        f"PUT {_CHARACTERISTIC}", "UpdateCharacteristicValue", "Write a value.", _write_value,
        tag="Devices", examples=_CONNECTED, body=VALUE, refusals=(409,), answers={202: None},
    ),
    declare(
        f"GET {_DESCRIPTOR}", "FetchDescriptorValue", "The stored value of a descriptor.",
        _read_value, tag="Devices", examples=_CONNECTED, answers={200: VALUE},
    ),
    declare(
        f"PUT {_DESCRIPTOR}", "UpdateDescriptorValue", "Write a descriptor's value.", _write_value,
        tag="Devices", examples=_CONNECTED, body=VALUE, answers={202: None},
    ),
    declare(
        "POST /v1/devices/{gateway_id}/discover/{device_id}", "Discover",
        "Have the gateway rediscover the services of a BLE device.", _discover,
        tag="Devices", examples=_CONNECTED, changes=True, answers={202: None},
    ),
    declare(
        "POST /v1/devices/{device_id}/scan", "Scan", "Have the gateway look for BLE devices.",
        _scan, tag="Devices", examples={"device_id": seed.GATEWAY}, changes=True,
        refusals=(409,), answers={202: None},
    ),
    declare(
        "PUT /v1/devices/{gateway_id}/{device_id}", "AddBLEDevice",
        "Connect a BLE device through a gateway.", _add,
        tag="Devices", examples=_CONNECTED, refusals=(409,), answers={204: None},
    ),
)  # fmt: skip
