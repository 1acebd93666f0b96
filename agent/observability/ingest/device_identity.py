"""The identity of a device at the observability service: serial, versions, software type. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields, replace

from agent.config.profile import KitSettings
from agent.errors import UsageError
from agent.json_value import JSONValue
from agent.observability.api.resource_names import check_slug, check_text, check_version
from agent.observability.ingest import chunk_codec
from agent.observability.ingest.chunks import kind_of, open_message
from agent.observability.ingest.event_decode import decode_payload


@dataclass(frozen=True, slots=True)
class DeviceIdentity:
    """The four names that events and uploads carry. Raises UsageError for an invalid one."""

    device_serial: str
    hardware_version: str
    software_type: str
    software_version: str

    def __post_init__(self) -> None:
        """Check all four names. Raises UsageError."""
        check_slug("device_serial", self.device_serial)
        check_version("hardware_version", self.hardware_version)
        check_text("software_type", self.software_type)
        check_version("software_version", self.software_version)


UNKNOWN = "unknown"
"""Stands for a name that is not known: the service refuses an event without one."""
_LARGEST_EVENT = 64 * 1024  # bytes; a larger event is forwarded without being decoded


@dataclass(frozen=True, slots=True)
class PartialIdentity:
    """The known part of a device's identity; "" for what is not known."""

    device_serial: str = ""
    hardware_version: str = ""
    software_type: str = ""
    software_version: str = ""

    def __or__(self, other: PartialIdentity) -> PartialIdentity:
        """Return these names, completed by those of `other`."""
        return PartialIdentity(
            *(a or b for a, b in zip(astuple(self), astuple(other), strict=True))
        )

    def identity(self) -> DeviceIdentity:
        """Return all four, UNKNOWN in place of what is missing. Raises UsageError."""
        return DeviceIdentity(*(name or UNKNOWN for name in astuple(self)))


def profile_identity(kit: KitSettings) -> PartialIdentity:
    """Return the part of a kit's identity that is configured in its profile."""
    return PartialIdentity(
        kit.device_id, kit.hardware_version, kit.software_type, kit.software_version
    )


@dataclass
class IdentityTracker:
    """Finds the identity of one device.

    In order of precedence: what is configured, what the device's chunks report, the fallback. But
    the serial is the same for all that is sent, and does not change with what a chunk reports.

    Begin with what chunks `reported` earlier; call `on_change` whenever that changes.

    `unnamed` stands for the serial in the outbox while that is not known.
    """

    configured: PartialIdentity
    fallback: Callable[[], PartialIdentity] = PartialIdentity
    reported: PartialIdentity = PartialIdentity()
    on_change: Callable[[PartialIdentity], None] = lambda _identity: None
    unnamed: str = ""

    def __post_init__(self) -> None:
        self._messages = chunk_codec.Reassembler(_LARGEST_EVENT)
        self._is_event = False

    @classmethod
    def of(cls, device: DeviceIdentity) -> IdentityTracker:
        """Return the tracker of a device whose identity is fully configured."""
        return cls(PartialIdentity(*astuple(device)))

    @property
    def sender(self) -> str:
        """The serial that everything is sent under, else `unnamed`.

        Never one that the chunks report: it would change in the middle of a message.
        """
        return self._serial() or self.unnamed

    @property
    def reported_serial(self) -> str:
        """The serial that the device's own chunks name; "" for none."""
        return self.reported.device_serial

    def identity(self) -> DeviceIdentity:
        """Return the identity as it is known now. Raises UsageError."""
        serial = self._serial() or ("" if self.unnamed else self.reported_serial)
        names = self.configured | self.reported | self.fallback()
        return replace(names, device_serial=serial).identity()

    def _serial(self) -> str:
        return (self.configured | self.fallback()).device_serial

    def observe(self, chunk: bytes) -> None:
        """Read the identity in the next chunk of the device; a damaged chunk changes nothing."""
        if chunk and not chunk_codec.is_continuation(chunk):
            self._is_event = _begins_event(chunk)
        if not self._is_event:
            return
        for result in self._messages.receive(chunk):
            if isinstance(result, bytes):
                self._report(_names_in(result) | self.reported)

    def forget_software(self) -> None:
        """Forget the reported software version: an update may have changed it."""
        self._report(replace(self.reported, software_version=""))

    def forget(self) -> None:
        """Forget all that chunks reported: another device is connected."""
        self._report(PartialIdentity())

    def _report(self, names: PartialIdentity) -> None:
        if names != self.reported:
            self.reported = names
            self.on_change(names)


def _begins_event(chunk: bytes) -> bool:
    """Return whether a first chunk begins an event: no other message is reassembled."""
    try:
        return kind_of(chunk_codec.first_byte(chunk)) == "event"
    except ValueError:
        return False


def _names_in(message: bytes) -> PartialIdentity:
    """Return the identity that the events of a message carry; the last event counts."""
    try:
        decoded = decode_payload(open_message(message))
    except ValueError:
        return PartialIdentity()
    names = PartialIdentity()
    for event in decoded if isinstance(decoded, list) else [decoded or {}]:
        names = _names_of(event) | names
    return names


def _names_of(event: dict[str, JSONValue]) -> PartialIdentity:
    event = {"software_version": event.get("release_version"), **event}
    checks = (check_slug, check_version, check_text, check_version)
    names = []
    for field, check in zip(fields(PartialIdentity), checks, strict=True):
        try:
            names.append(check(field.name, event.get(field.name)))
        except UsageError:
            names.append("")
    return PartialIdentity(*names)
