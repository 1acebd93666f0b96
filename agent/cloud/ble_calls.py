"""Calls for BLE devices: their values, and the discovery of their services."""

from __future__ import annotations

from dataclasses import dataclass

from agent.call import Call, Request, Response, Scheme
from agent.cloud.ble import octets, value_of
from agent.cloud.device import if_match, segment
from agent.cloud.device_changes import Change


@dataclass(frozen=True, slots=True)
class FetchCharacteristicValue(Call[bytes]):
    """The value of a characteristic as last seen by the cloud."""

    schemes = (Scheme.API_KEY,)

    device_id: str
    characteristic_id: str

    def request(self) -> Request:
        """Return what to send."""
        device = segment(self.device_id, "a device id")
        inner = segment(self.characteristic_id, "a characteristic")
        return Request("GET", f"/v1/devices/{device}/characteristics/{inner}")

    def parse(self, response: Response) -> bytes:
        """Return the value. Raises BadAnswer."""
        return value_of(response.json(), self.characteristic_id)


@dataclass(frozen=True, slots=True)
class UpdateCharacteristicValue(Change):
    """Write a characteristic of a BLE device (clause D6)."""

    characteristic_id: str
    value: bytes
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        inner = segment(self.characteristic_id, "a characteristic")
        return Request(
            "PUT",
            f"{self.path}/characteristics/{inner}",
            headers=if_match(self.version),
            json=octets(self.value),
        )


@dataclass(frozen=True, slots=True)
class UpdateDescriptorValue(Change):
    """Write a descriptor of a BLE device's characteristic."""

    characteristic_id: str
    descriptor_id: str
    value: bytes
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        inner = segment(self.characteristic_id, "a characteristic")
        inmost = segment(self.descriptor_id, "a descriptor")
        return Request(
            "PUT",
            f"{self.path}/characteristics/{inner}/descriptors/{inmost}",
            headers=if_match(self.version),
            json=octets(self.value),
        )


@dataclass(frozen=True, slots=True)
class DiscoverServices(Change):
    """Request that a gateway reads a BLE device's services again; it takes seconds (clause D7)."""

    gateway_id: str
    version: str | None = None

    def request(self) -> Request:
        """Return what to send: the gateway stands first, and there is no body."""
        gateway = segment(self.gateway_id, "a gateway's id")
        device = segment(self.device_id, "a device id")
        path = f"/v1/devices/{gateway}/discover/{device}"
        return Request("POST", path, headers=if_match(self.version))
