"""Redaction of recordings: secret parameters, tokens, keys, the device's identity.

A value that the driver reads keeps its shape, so that a redacted session still plays: a token keeps
its claims and loses its signature, an identity is replaced by a made-up one (`identity`).
Secret parameters (at.protocol.secret_parameters) become `{redacted:…}`, which a replay lets stand
for any text.
"""

from __future__ import annotations

import re

from at.protocol.command_redaction import without_secrets
from at.transcripts.identity import IdentityRedactor

# A token without its signature opens nothing.
_SIGNATURE = b"A" * 86
_TOKEN = re.compile(rb"\b(eyJ[\w-]*)\.([\w-]+)\.([\w-]+)", re.ASCII)
_KEY_MARK = re.compile(rb"-----(BEGIN|END) [A-Z ]*PRIVATE KEY-----")
_KEY_LINE = re.compile(rb"(?!(?:OK|ERROR|BEGIN|PRIVATE)\Z)[A-Za-z0-9+/]{4,}={0,2}")
_BEARER = re.compile(rb"(?i)(authorization: *(?:bearer|basic) +)[^\s\"]+")


class Redactor:
    """Removes secrets from whole lines; with `identity` also what names device, SIM or person."""

    def __init__(self, *, identity: bool = False) -> None:
        self._identity = IdentityRedactor() if identity else None
        self._keys = _KeysByLine()

    def clean(self, data: bytes) -> bytes:
        """Return a line without its secrets."""
        data = self._keys.clean(data)
        if self._identity is None:
            return _TOKEN.sub(rb"\1.\2." + _SIGNATURE, _without_secrets(data))
        # What a modem signed is signed by a published key now: such a token opens nothing either.
        cleaned = _without_secrets(self._identity.clean(data))
        self._identity.note_written(data, cleaned)
        return cleaned


def _without_secrets(data: bytes) -> bytes:
    data = without_secrets(data.decode("latin-1")).encode("latin-1")
    return _BEARER.sub(rb"\1{redacted:token}", data)


class _KeysByLine:
    """Hides a private key that passes line by line, since a forgotten quote makes lines of it."""

    def __init__(self) -> None:
        self._open = False
        self._lines: set[bytes] = set()
        """The lines of keys so far: an echo may come after the whole key."""

    def clean(self, data: bytes) -> bytes:
        """Return a line without what is a key's by the lines before it."""
        marks = _KEY_MARK.findall(data)
        if marks:
            self._open = marks[-1] == b"BEGIN"
            self._lines.update(filter(_KEY_LINE.fullmatch, data.split()))
            return data
        text = data.strip()
        if (self._open or text in self._lines) and _KEY_LINE.fullmatch(text):
            self._lines.add(text)
            return data.replace(text, b"{redacted:key}", 1)
        return data
