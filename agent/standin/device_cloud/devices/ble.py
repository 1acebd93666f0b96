"""BLE devices behind a gateway: values, discovery, adding (clauses D6, D7, D3)."""

from __future__ import annotations

import copy
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import access, seed
from agent.standin.device_cloud.devices.registry import Record, registry
from agent.standin.device_cloud.refusals import DeviceCloudRefused, no_device, not_found
from agent.standin.device_cloud.resource import accepted, check_if_match, read_json, receive_body
from agent.standin.state import Cloud

# The longest attribute value: Bluetooth Core, volume 3, part F, 3.2.9.
VALUE: Schema = {
    "type": "array",
    "maxItems": 512,
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of values of BLE devices."""

    async def read_value(request: Request) -> Response:
        principal = access.user(request, cloud)
        record = registry(cloud).get(principal.team, request.path_params["device_id"])
        found = _attribute(record["fields"], request.path_params)
        return JSON(found["value"], headers={"ETag": record["version"]})

    async def write_value(request: Request) -> Response:
        principal = access.user(request, cloud)
        await receive_body(request)
        record = registry(cloud).get(principal.team, request.path_params["device_id"])
        fields = copy.deepcopy(record["fields"])
        found = _attribute(fields, request.path_params)
        check_if_match(request, record["version"])
        value = await read_json(request, VALUE)
        found["value"] = [int(byte) for byte in value]
        registry(cloud).change(record, fields)
        return accepted()

    one = "/v1/devices/{device_id}/characteristics/{characteristic_id}"
    descriptor = one + "/descriptors/{descriptor_id}"
    return [
        Endpoint(one, read_value, methods=["GET"], name="FetchCharacteristicValue"),
        Endpoint(one, write_value, methods=["PUT"], name="UpdateCharacteristicValue"),
        Endpoint(descriptor, read_value, methods=["GET"], name="FetchDescriptorValue"),
        Endpoint(descriptor, write_value, methods=["PUT"], name="UpdateDescriptorValue"),
    ]


def gateway_routes(cloud: Cloud) -> list[Route]:
    """Return the routes of gateways: discovery, scans, new BLE devices."""

    async def discover(request: Request) -> Response:
        _, child = _pair(request, cloud)
        check_if_match(request, child["version"])
        registry(cloud).schedule_discovery(child)
        return accepted()

    async def scan(request: Request) -> Response:
        principal = access.user(request, cloud)
        gateway = registry(cloud).get(principal.team, request.path_params["device_id"])
        check_if_match(request, gateway["version"])
        if gateway["fields"]["type"] != "Gateway":
            raise DeviceCloudRefused(409, "the device is no gateway: it cannot look for others")
        return accepted()

    async def add(request: Request) -> Response:
        principal = access.user(request, cloud)
        devices = registry(cloud)
        gateway = _gateway(cloud, principal.team, request.path_params["gateway_id"])
        check_if_match(request, gateway["version"])
        device_id = request.path_params["device_id"]
        taken = devices.find(device_id)
        if taken is None:
            devices.create(principal.team, seed.ble_device(device_id, gateway["fields"]["id"]))
            devices.sync_connections(gateway["fields"]["id"])
        elif taken["fields"].get("gatewayId") != gateway["fields"]["id"]:
            raise DeviceCloudRefused(409, "a device of that id is connected elsewhere")
        return Response(status_code=204)

    return [
        Endpoint(
            "/v1/devices/{gateway_id}/discover/{device_id}",
            discover,
            methods=["POST"],
            name="Discover",
        ),
        Endpoint("/v1/devices/{device_id}/scan", scan, methods=["POST"], name="Scan"),
        Endpoint("/v1/devices/{gateway_id}/{device_id}", add, methods=["PUT"], name="AddBLEDevice"),
    ]


def _gateway(cloud: Cloud, team: str, gateway_id: str) -> Record:
    gateway = registry(cloud).get(team, gateway_id)
    if gateway["fields"]["type"] != "Gateway":
        raise not_found(f"device {gateway_id[:128]!r} is no gateway")
    return gateway


def _pair(request: Request, cloud: Cloud) -> tuple[Record, Record]:
    """Return the gateway and the BLE device that is connected through it."""
    principal = access.user(request, cloud)
    gateway = _gateway(cloud, principal.team, request.path_params["gateway_id"])
    child = registry(cloud).get(principal.team, request.path_params["device_id"])
    if child["fields"].get("gatewayId") != gateway["fields"]["id"]:
        raise no_device(request.path_params["device_id"])
    return gateway, child


def _attribute(fields: dict[str, Any], path: dict[str, str]) -> dict[str, Any]:
    """Return the characteristic, or the descriptor, that a path names by UUID or by its path."""
    wanted = path["characteristic_id"].casefold()
    if fields["type"] == "BLE":
        for service in fields["state"].values():
            for found in service["characteristics"].values():
                if wanted in {found["uuid"].casefold(), found["path"].casefold()}:
                    return _descriptor(found, path.get("descriptor_id"))
    raise not_found(f"no characteristic {path['characteristic_id'][:128]!r}")


def _descriptor(characteristic: dict[str, Any], wanted: str | None) -> dict[str, Any]:
    if wanted is None:
        return characteristic
    for found in characteristic["descriptors"].values():
        if wanted.casefold() in {found["uuid"].casefold(), found["path"].casefold()}:
            descriptor: dict[str, Any] = found
            return descriptor
    raise not_found(f"no descriptor {wanted[:128]!r}")
