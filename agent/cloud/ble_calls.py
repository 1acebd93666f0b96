"""Calls for BLE devices: their values, and the discovery of their services."""

from __future__ import annotations

from dataclasses import dataclass

from agent.call import Call, Request, Response, Scheme
from agent.cloud.ble import decode_value, encode_value
from agent.cloud.device_changes import Change
from agent.cloud.request_parts import device_path, if_match, path_segment


@dataclass(frozen=True, slots=True)
class FetchCharacteristicValue(Call[bytes]):
    """The value of a characteristic as last seen by the cloud."""

    schemes = (Scheme.API_KEY,)

    device_id: str
    characteristic_id: str

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", _characteristic_path(self.device_id, self.characteristic_id))

    def parse(self, response: Response) -> bytes:
        """Return the value. Raises BadAnswer."""
        return decode_value(response.json(), self.characteristic_id)


@dataclass(frozen=True, slots=True)
class UpdateCharacteristicValue(Change):
    """Write a characteristic of a BLE device (clause D6)."""

    characteristic_id: str
    value: bytes
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        path = _characteristic_path(self.device_id, self.characteristic_id)
        headers = if_match(self.version)
        return Request("PUT", path, headers=headers, json=encode_value(self.value))


@dataclass(frozen=True, slots=True)
class UpdateDescriptorValue(Change):
    """Write a descriptor of a BLE device's characteristic."""

    characteristic_id: str
    descriptor_id: str
    value: bytes
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        path = _characteristic_path(self.device_id, self.characteristic_id)
        path += f"/descriptors/{path_segment(self.descriptor_id, 'a descriptor')}"
        headers = if_match(self.version)
        return Request("PUT", path, headers=headers, json=encode_value(self.value))


@dataclass(frozen=True, slots=True)
class DiscoverServices(Change):
    """Request that a gateway reads a BLE device's services again; it takes seconds (clause D7)."""

    gateway_id: str
    version: str | None = None

    def request(self) -> Request:
        """Return what to send: the gateway stands first, and there is no body."""
        gateway = path_segment(self.gateway_id, "a gateway's id")
        device = path_segment(self.device_id, "a device id")
        path = f"/v1/devices/{gateway}/discover/{device}"
        return Request("POST", path, headers=if_match(self.version))


def _characteristic_path(device_id: str, characteristic_id: str) -> str:
    characteristic = path_segment(characteristic_id, "a characteristic")
    return f"{device_path(device_id)}/characteristics/{characteristic}"
