"""Base64url, public keys and signatures of the modem. Errors of `cryptography` end here."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from at.protocol.errors import ParseError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey


_TEXT = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_PEM_KEY = re.compile(rb"-----BEGIN [^-]*-----.*?-----END [^-]*-----", re.DOTALL)
_HALF = 32


def decode_base64url(text: str, what: str) -> bytes:
    """Return the bytes of base64url `text`. Raises ParseError, which names `what`, never the text.

    The alphabet of base64 and padding are accepted, too: some firmware writes them.
    """
    plain = text.rstrip("=").replace("+", "-").replace("/", "_")
    if not _TEXT.fullmatch(plain) or len(plain) % 4 == 1:
        raise ParseError(f"{what} is not base64url")
    return urlsafe_b64decode(plain + "=" * (-len(plain) % 4))


def encode_base64url(data: bytes) -> str:
    """Return bytes in base64url without padding (RFC 7515)."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def load_public_key(data: bytes) -> EllipticCurvePublicKey:
    """Return the P-256 key of a SubjectPublicKeyInfo, in DER or PEM. Raises ParseError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    try:
        if b"-----BEGIN" in data:
            key = serialization.load_pem_public_key(data)
        else:
            key = serialization.load_der_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise ParseError("the public key cannot be read") from wrong
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ParseError("the public key is not on the curve P-256")
    return key


def load_public_keys(data: bytes) -> tuple[EllipticCurvePublicKey, ...]:
    """Return the P-256 keys of a file: one in DER, or any number in PEM. Raises ParseError."""
    return tuple(load_public_key(one) for one in _PEM_KEY.findall(data) or [data])


def key_der(key: EllipticCurvePublicKey) -> bytes:
    """Return a key as SubjectPublicKeyInfo in DER."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def key_pem(key: EllipticCurvePublicKey) -> str:
    """Return a key as SubjectPublicKeyInfo in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_id(key: EllipticCurvePublicKey) -> str:
    """Return what a modem writes as `kid`: hex SHA-256 of the key in DER."""
    return sha256(key_der(key)).hexdigest()


def verify_raw(key: EllipticCurvePublicKey, signature: bytes, data: bytes) -> bool:
    """Return whether `signature`, 64 bytes r and s, is by `key` over SHA-256 of `data`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    if len(signature) != 2 * _HALF:
        return False
    r, s = (int.from_bytes(half) for half in (signature[:_HALF], signature[_HALF:]))
    try:
        key.verify(encode_dss_signature(r, s), data, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True
