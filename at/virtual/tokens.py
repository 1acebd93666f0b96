"""What the modem signs: COSE_Sign1 messages (RFC 8152) and JSON Web Tokens (RFC 7515, 7519)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from at.virtual import keys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SELF_DESCRIBED = 55799
COSE_SIGN1 = 18
IDENTITY_KEY = -2
_PROTECTED = bytes.fromhex("a10126")  # {1: -7}: ES256


def self_described(items: list[Any]) -> bytes:
    """Return a message of the modem: an array under the tag that says "this is CBOR"."""
    import cbor2

    return cbor2.dumps(cbor2.CBORTag(SELF_DESCRIBED, items))


def sign1(
    key: EllipticCurvePrivateKey, payload: bytes | None, external: bytes, *, detached: bool = False
) -> bytes:
    """Return a COSE_Sign1 by the identity key.

    The modem signs a detached payload as null, not as an empty byte string as RFC 8152 has it.
    """
    import cbor2

    to_sign = cbor2.dumps(["Signature1", _PROTECTED, external, None if detached else payload])
    unprotected = {4: cbor2.dumps(IDENTITY_KEY)}
    signature = keys.sign_raw(key, to_sign)
    sent = None if detached else payload
    return cbor2.dumps(cbor2.CBORTag(COSE_SIGN1, [_PROTECTED, unprotected, sent, signature]))


def dotted(body: bytes, cose: bytes) -> str:
    """Return body and COSE message as the modem prints them."""
    return f"{_base64url(body)}.{_base64url(cose)}"


def web_token(key: EllipticCurvePrivateKey, claims: dict[str, Any]) -> str:
    """Return a JWT. Its JSON texts end in blanks, so that no base64 needs padding."""
    header = {"typ": "JWT", "alg": "ES256", "kid": keys.key_id(key)}
    signed = f"{_base64url(_padded(header))}.{_base64url(_padded(claims))}"
    return f"{signed}.{_base64url(keys.sign_raw(key, signed.encode('ascii')))}"


def _padded(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 3)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
