"""Who a device is at the observability service: the names that its data carries. Pure."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from agent.errors import UsageError
from agent.observability.api.slugs import as_slug, slug, version_name
from agent.observability.ingest.chunk_codec import (
    ReassembledMessage,
    Reassembler,
    decode_varint,
    is_continuation,
)
from agent.observability.ingest.event_decode import decode_payload
from agent.observability.ingest.messages import kind_of, open_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config.profile import KitSettings


LONGEST = 128
"""Characters of a name."""


@dataclass(frozen=True, slots=True)
class DeviceIdentity:
    """The four names that events and uploads carry. Raises UsageError when one breaks its rule."""

    device_serial: str
    hardware_version: str
    software_type: str
    software_version: str

    def __post_init__(self) -> None:
        """Check the whole of each value."""
        check_slug("device_serial", self.device_serial)
        check_version("hardware_version", self.hardware_version)
        check_text("software_type", self.software_type)
        check_version("software_version", self.software_version)


def check_slug(name: str, value: object) -> str:
    """Return `value`, which may come from anyone's JSON, if it is a slug. Raises UsageError."""
    return slug(_text(name, value), name)


def check_version(name: str, value: object) -> str:
    """Return `value` if it is a version. Raises UsageError, naming the rule."""
    return version_name(_text(name, value), name)


def check_text(name: str, value: object) -> str:
    """Return `value` if it is a text of a usable length. Raises UsageError."""
    text = _text(name, value)
    if not 1 <= len(text) <= LONGEST or not text.isprintable():
        raise UsageError(f"{name}: {text[:60]!r} is no text of 1 to {LONGEST} characters")
    return text


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name}: {'it is missing' if value is None else 'it is no text'}")
    return value


UNKNOWN = "unknown"
"""What stands for a name that nothing tells: the service takes no event without it."""
_LARGEST_EVENT = 64 * 1024  # bytes; a larger one is forwarded, but not looked into
_MORE, _CRC_AT_END = 0x40, 0x08


@dataclass(frozen=True, slots=True)
class PartialIdentity:
    """What is known of a device's identity; "" is what is not."""

    device_serial: str = ""
    hardware_version: str = ""
    software_type: str = ""
    software_version: str = ""

    def __or__(self, other: PartialIdentity) -> PartialIdentity:
        """Return these names, and of the other those that are not known here."""
        return PartialIdentity(
            *(a or b for a, b in zip(astuple(self), astuple(other), strict=True))
        )

    def identity(self) -> DeviceIdentity:
        """Return them whole, UNKNOWN in place of what is missing. Raises UsageError."""
        return DeviceIdentity(*(name or UNKNOWN for name in astuple(self)))


def profile_identity(kit: KitSettings) -> PartialIdentity:
    """Return what a profile says of its kit."""
    serial = as_slug(kit.device_id)
    return PartialIdentity(serial, kit.hardware_version, kit.software_type, kit.software_version)


class IdentityTracker:
    """The names of one device: what is said of it, else what its chunks say, else the rest."""

    def __init__(
        self,
        said: Callable[[], PartialIdentity],
        otherwise: Callable[[], PartialIdentity] = PartialIdentity,
        *,
        reported: PartialIdentity = PartialIdentity(),
        learned: Callable[[PartialIdentity], None] = lambda _names: None,
    ) -> None:
        """Begin with what chunks said before, `reported`; `learned` hears what they say anew."""
        self._said = said
        self._otherwise = otherwise
        self._reported = reported
        self._learned = learned
        self._messages = Reassembler(_LARGEST_EVENT)
        self._is_event = False

    @classmethod
    def of(cls, device: DeviceIdentity) -> IdentityTracker:
        """Return the names of a device of which everything is said."""
        names = PartialIdentity(*astuple(device))
        return cls(lambda: names)

    @property
    def sender(self) -> str:
        """The serial that chunks are sent under.

        Never one that they tell themselves: it would change in the middle of a message. "" where
        nobody says one.
        """
        return (self._said() | self._otherwise()).device_serial

    def identity(self) -> DeviceIdentity:
        """Return who the device is, as far as that is known now. Raises UsageError."""
        return (self._said() | self._reported | self._otherwise()).identity()

    def hear(self, chunk: bytes) -> None:
        """Learn from the next chunk of the device; one that is damaged teaches nothing."""
        if chunk and not is_continuation(chunk):
            self._is_event = _begins_event(chunk)
        if not self._is_event:
            return
        for found in self._messages.receive(chunk):
            if isinstance(found, ReassembledMessage):
                self._learn(_names_in(found.data) | self._reported)

    def forget_software(self) -> None:
        """Know no longer which version runs: it may have been exchanged."""
        self._learn(replace(self._reported, software_version=""))

    def forget(self) -> None:
        """Know nothing that chunks said: another device is there now."""
        self._learn(PartialIdentity())

    def _learn(self, names: PartialIdentity) -> None:
        if names != self._reported:
            self._reported = names
            self._learned(names)


def _begins_event(chunk: bytes) -> bool:
    """Tell whether a first chunk is one of an event; what is none need not be put together."""
    try:
        at = 1 if chunk[0] & _CRC_AT_END else 3  # else the CRC comes first
        at = decode_varint(chunk, at)[1] if chunk[0] & _MORE else at
    except ValueError:
        return False
    return kind_of(chunk[at : at + 1]) == "event"


def _names_in(message: bytes) -> PartialIdentity:
    """Return the names that the events of a message carry; the last one counts."""
    try:
        decoded = decode_payload(open_message(message))
    except ValueError:
        return PartialIdentity()
    names = PartialIdentity()
    for event in decoded if isinstance(decoded, list) else [decoded]:
        names = _names_of(event) | names
    return names


def _names_of(event: dict[str, Any]) -> PartialIdentity:
    event = {"software_version": event.get("release_version"), **event}
    checks = (check_slug, check_version, check_text, check_version)
    found = []
    for field, check in zip(fields(PartialIdentity), checks, strict=True):
        try:
            found.append(check(field.name, event.get(field.name)))
        except UsageError:
            found.append("")
    return PartialIdentity(*found)
