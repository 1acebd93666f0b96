"""Redaction of recordings: secret parameters, tokens, keys; on request, the device's identity.

A value that the driver reads keeps its shape, so that a redacted session still plays: a token keeps
its claims and loses its signature, an identity is replaced by the same made-up one everywhere.
Secret parameters (at.protocol.secret_parameters) become `{redacted:…}`, which a replay lets stand
for any text.
"""

from __future__ import annotations

import hashlib
import re

from at.protocol.command_redaction import without_secrets

# A token without its signature opens nothing.
_SIGNATURE = b"A" * 86
_TOKEN = re.compile(rb"\b(eyJ[\w-]*)\.([\w-]+)\.([\w-]+)", re.ASCII)
_REDACTED_TOKEN = b"eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJyZWRhY3RlZCI6dHJ1ZX0." + _SIGNATURE
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*?)(-----END \1-----|\Z)", re.DOTALL
)
_BEARER = re.compile(rb"(?i)(authorization: *(?:bearer|basic) +)[^\s\"]+")

_UUID = re.compile(
    rb"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE
)
_DIGITS = re.compile(rb"(?<![0-9A-Za-z])(nrf-)?([0-9]{14,20})(?=F?(?![0-9A-Za-z]))", re.ASCII)
_ATTESTED = re.compile(rb"(%(?:KEYGEN|ATTESTTOKEN|CLAIMTOKEN): ?)\"[^\"]*(\"|\Z)")


class Redactor:
    """Removes secrets from whole lines; with `identity` also IMEI, ICCID, IMSI and UUIDs."""

    def __init__(self, *, identity: bool = False) -> None:
        self._identity = identity

    def clean(self, data: bytes) -> bytes:
        """Return a line without its secrets."""
        data = without_secrets(data.decode("latin-1")).encode("latin-1")
        data = _PRIVATE_KEY.sub(rb"-----BEGIN \1-----{redacted:key}\3", data)
        data = _BEARER.sub(rb"\1{redacted:token}", data)
        if not self._identity:
            return _TOKEN.sub(rb"\1.\2." + _SIGNATURE, data)
        data = _TOKEN.sub(_REDACTED_TOKEN, data)
        data = _ATTESTED.sub(rb'\1"{redacted:identity}\2', data)
        data = _UUID.sub(_other_uuid, data)
        if data.lstrip().startswith(b"%XTIME"):
            return data  # its long digits are a time
        return _DIGITS.sub(_other_digits, data)


def _other_uuid(match: re.Match[bytes]) -> bytes:
    """Return a made-up UUID, the same one for the same device."""
    digest = hashlib.sha256(b"redacted " + match.group().lower()).hexdigest()[:4]
    return f"00000000-0000-4000-8000-00000000{digest}".encode()


def _other_digits(match: re.Match[bytes]) -> bytes:
    """Return as many made-up digits: a test IMEI's beginning, then four from the old ones."""
    digits = match.group(2)
    tail = int(hashlib.sha256(b"redacted " + digits).hexdigest()[:8], 16) % 10_000
    made = b"00101834".ljust(len(digits) - 4, b"0")[: len(digits) - 4] + b"%04d" % tail
    return (match.group(1) or b"") + made
