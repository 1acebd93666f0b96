"""Changing devices. Each change may depend on the version that was read (clause D5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agent.call import Call, Request, Response, Scheme
from agent.cloud.request_parts import USER_OR_DEVICE, device_path, if_match
from agent.errors import UsageError

# Many changes are taken with 202: they show a little later.


@dataclass(frozen=True, slots=True)
class Change(Call[None]):
    """Base of the changes of one device. The device must still have `version`; None for any."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)

    device_id: str

    def parse(self, response: Response) -> None:
        """Return nothing: the status alone counts (clause D6)."""

    @property
    def path(self) -> str:
        """The path of the device."""
        return device_path(self.device_id)


@dataclass(frozen=True, slots=True)
class UpdateDeviceName(Change):
    """Rename a device (clause D9.1)."""

    name: str
    version: str | None = None

    def request(self) -> Request:
        """Return what to send. Raises UsageError for a name that no service takes."""
        if not 1 <= len(self.name) <= 128 or not self.name.isprintable():
            raise UsageError("a name has 1 to 128 characters, and no line break")
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


@dataclass(frozen=True, slots=True)
class UpdateDeviceState(Change):
    """Merge into the state; None deletes a key. A device may change its own."""

    schemes = USER_OR_DEVICE

    reported: Mapping[str, Any] | None = None
    desired: Mapping[str, Any] | None = None
    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        both = {"reported": self.reported, "desired": self.desired}
        body = {name: part for name, part in both.items() if part is not None}
        return Request("PATCH", f"{self.path}/state", headers=if_match(self.version), json=body)


@dataclass(frozen=True, slots=True)
class DeleteDevice(Change):
    """Remove a device from its team."""

    # A second try after a lost answer would be a 404 that says nothing.
    repeatable = False

    version: str | None = None

    def request(self) -> Request:
        """Return what to send."""
        return Request("DELETE", self.path, headers=if_match(self.version))
