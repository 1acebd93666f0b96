"""The devices that exist from the start: one of each type, and a fleet on request."""

import re

import msgspec

from agent.json_value import JSONValue
from agent.standin.device_cloud import tables

GATEWAY = "nrf-352656109000001"
BLE = "DE:AD:BE:EF:00:01"
GENERIC = "nrf-352656109000002"
FREE_FORM = "greenhouse north"
LED_SERVICE = "00001523-1212-EFDE-1523-785FEABCD123"
LED_CHARACTERISTIC = "00001525-1212-EFDE-1523-785FEABCD123"
BUTTON_CHARACTERISTIC = "00001524-1212-EFDE-1523-785FEABCD123"
_CONFIGURATION = "2902"

_FLEET_ID = re.compile(r"nrf-352156(\d{9})")


def fleet_id(index: int) -> str:
    """Return the id of a made-up device of the fleet."""
    return f"nrf-352156{index:09d}"


def fleet_index(device_id: str) -> int | None:
    """Return the index of a fleet id, or None where the id is of another form."""
    match = _FLEET_ID.fullmatch(device_id)
    return int(match[1]) if match else None


def fleet_device(index: int) -> tables.DeviceFields:
    """Return the fields of a fleet device that nothing has changed."""
    return _updatable(fleet_id(index), "fleet")


def ip_device(device_id: str, kind: str, name: str = "") -> tables.DeviceFields:
    """Return the fields of a Gateway or a Generic device."""
    return tables.DeviceFields(
        id=device_id,
        name=name or device_id,
        type=kind,
        cloud_mqtt_enabled=False,
        state={
            "desired": {},
            "reported": {"name": name or device_id},
            "metadata": {},
            "version": 1,
        },
    )


def _updatable(device_id: str, tag: str) -> tables.DeviceFields:
    device = ip_device(device_id, "Generic")
    device.firmware = tables.Firmware(supports=["APP", "MODEM"], modem="mfw_nrf91x1_2.0.2")
    device.tags = [tag]
    return device


def ble_device(
    device_id: str, gateway_id: str, services: dict[str, tables.Service] | None = None
) -> tables.DeviceFields:
    """Return the fields of a BLE device; of one that was just added nothing is discovered yet."""
    return tables.DeviceFields(
        id=device_id,
        name=device_id,
        type="BLE",
        sub_type="unknown",
        gateway_id=gateway_id,
        state=msgspec.to_builtins(services or {}),
    )


def led_button_service() -> dict[str, tables.Service]:
    """Return the LED and button service of the demo application (clause D3.3)."""
    return _service(
        LED_SERVICE,
        # Both forms of the contract: only the true properties, and all of them.
        _characteristic(
            LED_SERVICE, LED_CHARACTERISTIC, [1, 0], {"read": True, "write": True}, descriptors={}
        ),
        _characteristic(
            LED_SERVICE,
            BUTTON_CHARACTERISTIC,
            [],
            {
                "broadcast": False,
                "read": True,
                "writeWithoutResponse": False,
                "write": False,
                "notify": True,
                "indicate": False,
                "authorizedSignedWrite": False,
            },
            descriptors={_CONFIGURATION: [0, 0]},
        ),
    )


def battery_service(level: int) -> dict[str, tables.Service]:
    """Return the battery service that the first discovery finds."""
    properties = {"read": True, "notify": True}
    return _service("180F", _characteristic("180F", "2A19", [level], properties, descriptors={}))


def seeded() -> list[tables.DeviceFields]:
    """Return the fields of the devices that are there from the start."""
    gateway = ip_device(GATEWAY, "Gateway", "Bench gateway")
    connected: JSONValue = {BLE: {"status": {"connected": True}}}
    gateway.state["reported"] = {"name": gateway.name, "statusConnections": connected}
    ble = ble_device(BLE, GATEWAY, led_button_service())
    return [gateway, ble, _updatable(GENERIC, "demo"), ip_device(FREE_FORM, "Generic")]


def _service(uuid: str, *characteristics: tables.Characteristic) -> dict[str, tables.Service]:
    return {uuid: tables.Service(uuid, {one.uuid: one for one in characteristics})}


def _characteristic(
    service: str,
    uuid: str,
    value: list[int],
    properties: dict[str, bool],
    *,
    descriptors: dict[str, list[int]],
) -> tables.Characteristic:
    path = f"{service}/{uuid}"
    return tables.Characteristic(
        uuid,
        path,
        value,
        properties,
        {
            key: tables.Descriptor(key, f"{path}/{key}", content)
            for key, content in descriptors.items()
        },
    )
