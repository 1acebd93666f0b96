"""A JWT that a modem made (AT%JWT), read and verified over its original bytes.

The modem pads its JSON texts with blanks at the end, so that base64url needs no "=": JSON is read
leniently there, and a signature is checked over what was signed, never over JSON written anew.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from at.protocol.errors import ParseError
from at.protocol.values import PartlyHidden
from at.tokens.key_formats import decode_base64url, encode_base64url, verify_raw

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

_LONGEST = 8192
_SIGNATURE_BYTES = 64
_UUID_TEXT = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_NOT_VERIFIED = "not verified, because the signer's public key is not known here"


class WrongAlgorithm(ParseError):
    """The token is not signed with ES256, the one algorithm that the service takes."""


class Jwt(PartlyHidden, frozen=True):
    """A decoded token. The token itself is a secret: it shows in no repr and no JSON."""

    header: dict[str, object]
    claims: dict[str, object]
    signed: bytes = b""
    """The original bytes that the signature covers."""
    signature: bytes = b""

    derived: ClassVar[tuple[str, ...]] = (
        "device_uuid",
        "chip",
        "issued_at",
        "expires_at",
        "verified",
        "reason",
    )

    hidden: ClassVar[frozenset[str]] = frozenset({"signed", "signature"})

    @property
    def token(self) -> str:
        """The token as the modem gave it."""
        return f"{self.signed.decode()}.{encode_base64url(self.signature)}"

    @property
    def kid(self) -> str | None:
        """The signer's key: hex SHA-256 of its public key in DER."""
        kid = self.header.get("kid")
        return kid if isinstance(kid, str) else None

    @property
    def device_uuid(self) -> str | None:
        """The UUID in `iss`, which is "<chip>.<uuid>"."""
        match = _UUID_TEXT.search(str(self.claims.get("iss", "")))
        return match.group().lower() if match else None

    @property
    def chip(self) -> str | None:
        """The chip in `iss`: "nRF9160"."""
        chip, dot, _ = str(self.claims.get("iss", "")).partition(".")
        return chip if dot else None

    @property
    def issued_at(self) -> datetime | None:
        """`iat` as a time."""
        return _time(self.claims.get("iat"))

    @property
    def expires_at(self) -> datetime | None:
        """`exp` as a time; None means that the modem had no time, or no expiry was asked for."""
        return _time(self.claims.get("exp"))

    @property
    def verified(self) -> bool | None:
        """Always None: verification needs the signer's key, see `verify`."""
        return None

    @property
    def reason(self) -> str:
        """Why `verified` is None."""
        return _NOT_VERIFIED


def read_jwt(token: str) -> Jwt:
    """Return the parts of a compact ES256 token.

    Raises ParseError (WrongAlgorithm), which shows no part of it.
    """
    text = token.strip()
    if len(text) > _LONGEST:
        raise ParseError(f"the token is longer than {_LONGEST} characters")
    parts = text.split(".")
    if len(parts) != 3:
        raise ParseError(f"the token has {len(parts)} parts, not header, claims and signature")
    header = _object(decode_base64url(parts[0], "the token's header"), "header")
    claims = _object(decode_base64url(parts[1], "the token's claims"), "claims")
    signature = decode_base64url(parts[2], "the token's signature")
    if header.get("alg") != "ES256":
        raise WrongAlgorithm("the token is not signed with ES256")
    if len(signature) != _SIGNATURE_BYTES:
        raise ParseError(f"the token's signature has {len(signature)} bytes, not 64 (r and s)")
    for name in ("iat", "exp"):
        number = claims.get(name, 0)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise ParseError(f"the token's {name} is no time")
    for name in ("iss", "sub", "jti"):
        if not isinstance(claims.get(name, ""), str):
            raise ParseError(f"the token's {name} is no text")
    return Jwt(header, claims, ".".join(parts[:2]).encode(), signature)


def verify(token: Jwt, key: EllipticCurvePublicKey) -> bool:
    """Return whether `key` signed the token's original bytes."""
    return verify_raw(key, token.signature, token.signed)


def _object(data: bytes, what: str) -> dict[str, object]:
    try:
        value = json.loads(data.decode("utf-8").rstrip(" \t\r\n\0"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise ParseError(f"the token's {what} is no JSON") from None
    if not isinstance(value, dict):
        raise ParseError(f"the token's {what} is no JSON object")
    return value


def _time(seconds: object) -> datetime | None:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
