"""The devices that exist from the start: one of each type, and a fleet on request."""

from __future__ import annotations

import re
from typing import Any

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


def fleet_device(index: int) -> dict[str, Any]:
    """Return the fields of a fleet device that nothing has changed."""
    device = ip_device(fleet_id(index), "Generic")
    device["firmware"] = {"supports": ["APP", "MODEM"], "modem": "mfw_nrf91x1_2.0.2"}
    device["tags"] = ["fleet"]
    return device


def ip_device(device_id: str, kind: str, name: str = "") -> dict[str, Any]:
    """Return the fields of a Gateway or a Generic device."""
    return {
        "id": device_id,
        "name": name or device_id,
        "type": kind,
        "tags": [],
        "cloudMqttEnabled": False,
        "firmware": {"supports": []},
        "state": {
            "desired": {},
            "reported": {"name": name or device_id},
            "metadata": {},
            "version": 1,
        },
    }


def ble_device(device_id: str, gateway_id: str) -> dict[str, Any]:
    """Return the fields of a BLE device that was just added: nothing is discovered yet."""
    return {
        "id": device_id,
        "name": device_id,
        "type": "BLE",
        "subType": "unknown",
        "gatewayId": gateway_id,
        "tags": [],
        "firmware": {"supports": []},
        "state": {},
    }


def led_button_service() -> dict[str, Any]:
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


def battery_service(level: int) -> dict[str, Any]:
    """Return the battery service that the first discovery finds."""
    properties = {"read": True, "notify": True}
    return _service("180F", _characteristic("180F", "2A19", [level], properties, descriptors={}))


def seeded() -> list[dict[str, Any]]:
    """Return the fields of the devices that are there from the start."""
    gateway = ip_device(GATEWAY, "Gateway", "Bench gateway")
    gateway["state"]["reported"]["statusConnections"] = {BLE: {"status": {"connected": True}}}
    ble = ble_device(BLE, GATEWAY)
    ble["state"] = led_button_service()
    generic = ip_device(GENERIC, "Generic")
    generic["firmware"] = {"supports": ["APP", "MODEM"], "modem": "mfw_nrf91x1_2.0.2"}
    generic["tags"] = ["demo"]
    return [gateway, ble, generic, ip_device(FREE_FORM, "Generic")]


def _service(uuid: str, *characteristics: dict[str, Any]) -> dict[str, Any]:
    return {uuid: {"uuid": uuid, "characteristics": {c["uuid"]: c for c in characteristics}}}


def _characteristic(
    service: str,
    uuid: str,
    value: list[int],
    properties: dict[str, bool],
    *,
    descriptors: dict[str, list[int]],
) -> dict[str, Any]:
    path = f"{service}/{uuid}"
    return {
        "uuid": uuid,
        "path": path,
        "value": value,
        "properties": properties,
        "descriptors": {
            key: {"uuid": key, "path": f"{path}/{key}", "value": content}
            for key, content in descriptors.items()
        },
    }
