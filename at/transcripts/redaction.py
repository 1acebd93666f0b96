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
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*?)(-----END \1-----|\Z)", re.DOTALL
)
_BEARER = re.compile(rb"(?i)(authorization: *(?:bearer|basic) +)[^\s\"]+")


class Redactor:
    """Removes secrets from whole lines; with `identity` also what names device, SIM or person."""

    def __init__(self, *, identity: bool = False) -> None:
        self._identity = IdentityRedactor() if identity else None

    def clean(self, data: bytes) -> bytes:
        """Return a line without its secrets."""
        if self._identity is None:
            return _TOKEN.sub(rb"\1.\2." + _SIGNATURE, _without_secrets(data))
        # What a modem signed is signed by a published key now: such a token opens nothing either.
        cleaned = _without_secrets(self._identity.clean(data))
        self._identity.note_written(data, cleaned)
        return cleaned


def _without_secrets(data: bytes) -> bytes:
    data = without_secrets(data.decode("latin-1")).encode("latin-1")
    data = _PRIVATE_KEY.sub(rb"-----BEGIN \1-----{redacted:key}\3", data)
    return _BEARER.sub(rb"\1{redacted:token}", data)
