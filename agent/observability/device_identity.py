"""Who a device is at the observability service: the names that its data carries. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import UsageError
from agent.observability.slugs import slug, version_name

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
