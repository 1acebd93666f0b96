"""Changing devices and what their BLE devices hold.

Each change may depend on the version that was read (clause D5.2).
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from agent.call import Request, Scheme, StatusCall
from agent.cloud.ble import characteristic_path
from agent.cloud.conventions import (
    USER_OR_DEVICE,
    device_path,
    if_match,
    is_one_line,
    missing,
    path_segment,
)
from agent.errors import UsageError

# Many changes are taken with 202: they show a little later.


@dataclass(frozen=True, slots=True)
class Change(StatusCall):
    """Base of the changes of one device. The device must still have `version`; None for any."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)

    device_id: str

    @property
    def path(self) -> str:
        """The path of the device."""
        return device_path(self.device_id)

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return where devices are listed, and where the version of this one is shown."""
        if status == 412:
            return f"`cellagent device show {shlex.quote(self.device_id)}` shows its version now"
        return missing(status)


@dataclass(frozen=True, slots=True)
class UpdateDeviceName(Change):
    """Rename a device (clause D9.1)."""

    name: str
    version: str | None = None

    def request(self) -> Request:
        """Return what to send. Raises UsageError for a name that no service takes."""
        if not 1 <= len(self.name) <= 128 or not is_one_line(self.name):
            raise UsageError("a name has 1 to 128 characters, no line break or other control")
        return Request("PUT", f"{self.path}/name", headers=if_match(self.version), json=self.name)


@dataclass(frozen=True, slots=True)
class UpdateDeviceTags(Change):
    """Replace all tags of a device."""

    tags: tuple[str, ...]
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        headers = if_match(self.version)
        return Request("PUT", f"{self.path}/tags", headers=headers, json=list(self.tags))

    def advice(self, status: int, code: int | None) -> str:
        """Return what a tag may hold, where one was refused."""
        if status == 422:
            return "a tag has letters, digits and `_`, `.`, `@`, `:`, `#`, `-` alone, and no blank"
        return Change.advice(self, status, code)


@dataclass(frozen=True, slots=True)
class UpdateDeviceState(Change):
    """Merge into the state; None deletes a key. A device may change its own."""

    in_project = True
    schemes = USER_OR_DEVICE

    reported: Mapping[str, object] | None = None
    desired: Mapping[str, object] | None = None
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        both = {"reported": self.reported, "desired": self.desired}
        body = {name: part for name, part in both.items() if part is not None}
        return Request("PATCH", f"{self.path}/state", headers=if_match(self.version), json=body)

    def serves(self) -> str:
        """Return the device in whose name something is reported; to desire is a user's own."""
        return self.device_id if self.reported is not None else ""


@dataclass(frozen=True, slots=True)
class DeleteDevice(Change):
    """Remove a device from its team."""

    in_project = True
    # A second try after a lost answer would be a 404 that says nothing.
    repeatable = False

    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        return Request("DELETE", self.path, headers=if_match(self.version))


@dataclass(frozen=True, slots=True)
class UpdateCharacteristicValue(Change):
    """Write a characteristic of a BLE device (clause D6)."""

    characteristic_id: str
    value: bytes
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        path = characteristic_path(self.device_id, self.characteristic_id)
        headers = if_match(self.version)
        return Request("PUT", path, headers=headers, json=list(self.value))


@dataclass(frozen=True, slots=True)
class UpdateDescriptorValue(Change):
    """Write a descriptor of a BLE device's characteristic."""

    characteristic_id: str
    descriptor_id: str
    value: bytes
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        path = characteristic_path(self.device_id, self.characteristic_id)
        path += f"/descriptors/{path_segment(self.descriptor_id, 'a descriptor')}"
        headers = if_match(self.version)
        return Request("PUT", path, headers=headers, json=list(self.value))


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
