"""What the calls of the device cloud send alike: path segments, If-Match, credentials. Pure."""

from __future__ import annotations

from urllib.parse import quote

from agent.call import Scheme
from agent.errors import UsageError

USER_OR_DEVICE = (Scheme.API_KEY, Scheme.DEVICE_JWT)
"""The credentials of a call that a device may make as well."""


def path_segment(value: str, what: str) -> str:
    """Return an id as one segment of a path, whatever characters it has (clause D2.2).

    Raises UsageError for what cannot be a segment: nothing, dots alone, control characters.
    """
    if not value or value in {".", ".."} or not value.isprintable():
        raise UsageError(f"{value!r} cannot be {what}")
    return quote(value, safe=":")


def device_path(device_id: str) -> str:
    """Return the path of a device. Raises UsageError."""
    return f"/v1/devices/{path_segment(device_id, 'a device id')}"


def if_match(version: str | None) -> dict[str, str]:
    """Return the header that makes a change depend on `version`, exactly as it was received."""
    if version is None:
        return {}
    if not version.isascii() or not version.isprintable() or not version.strip():
        raise UsageError(f"{version!r} cannot be a version")
    return {"if-match": version}
