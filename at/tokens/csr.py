"""What %KEYGEN answers: a certificate signing request (PKCS#10), or a public key, both DER."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from msgspec import Struct

from at.protocol.errors import ParseError
from at.tokens.key_formats import load_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey


_SEQUENCE = 0x30
# AlgorithmIdentifier of ecdsa-with-SHA256, as the modem writes it and as RFC 5758 does.
_WITH_NULL = bytes.fromhex("300c06082a8648ce3d0403020500")
_WITHOUT_NULL = bytes.fromhex("300a06082a8648ce3d040302")


class KeyBody(Struct, frozen=True):
    """A request or a bare key; `der` is what the modem sent, to the byte.

    `self_signed` tells whether a request is signed by its own key; None for a bare key.
    """

    kind: str
    der: bytes
    key: EllipticCurvePublicKey
    subject: str | None = None
    common_name: str | None = None
    self_signed: bool | None = None

    @property
    def csr_pem(self) -> str | None:
        """The request in PEM, made of the bytes as sent; None for a bare key."""
        if self.kind != "csr":
            return None
        text = b64encode(self.der).decode()
        lines = "\n".join(text[index : index + 64] for index in range(0, len(text), 64))
        return f"-----BEGIN CERTIFICATE REQUEST-----\n{lines}\n-----END CERTIFICATE REQUEST-----\n"


def read_key_body(der: bytes) -> KeyBody:
    """Return the request or key in `der`. Raises ParseError if it is neither.

    The modem's requests carry explicit NULL parameters, which strict readers refuse. They are
    left out for reading alone: whatever is signed or hashed is the bytes as they came.
    """
    try:
        return _request(der)
    except ParseError:
        pass
    try:
        return KeyBody("public_key", der, load_public_key(der))
    except ParseError:
        raise ParseError("the body is neither a signing request nor a public key") from None


def _request(der: bytes) -> KeyBody:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_der_x509_csr(without_null(der))
        key = request.public_key()
        names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        subject = request.subject.rfc4514_string()
        self_signed = request.is_signature_valid
    # A name of no text is a KeyError of cryptography 46.
    except (ValueError, TypeError, KeyError, UnsupportedAlgorithm, x509.InvalidVersion) as wrong:
        raise ParseError("the signing request cannot be read") from wrong
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ParseError("the signing request's key is not on the curve P-256")
    common_name = str(names[0].value) if names else None
    return KeyBody("csr", der, key, subject, common_name, self_signed)


def without_null(der: bytes) -> bytes:
    """Return a request without the NULL behind its signature algorithm. Raises ParseError.

    What the request signs, its first part, stays as it is, so its signature can be checked.
    """
    parts = elements(der)
    if parts[1:2] != [_WITH_NULL]:
        return der
    return sequence(parts[0], _WITHOUT_NULL, *parts[2:])


def elements(der: bytes) -> list[bytes]:
    """Return the DER elements of the one sequence that `der` is. Raises ParseError."""
    at, end = _content(der, 0)
    if der[0] != _SEQUENCE or end != len(der):
        raise ParseError("the body is not one DER sequence")
    parts = []
    while at < end:
        _, next_at = _content(der, at)
        parts.append(der[at:next_at])
        at = next_at
    return parts


def sequence(*parts: bytes) -> bytes:
    """Return DER elements as one sequence."""
    inner = b"".join(parts)
    return bytes([_SEQUENCE]) + _length(len(inner)) + inner


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Return where the content of the DER element at `at` starts and ends."""
    if len(der) < at + 2:
        raise ParseError("the body ends within a DER element")
    size, start = der[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(der[start : start + count]), start + count
    if start + size > len(der):
        raise ParseError("the body ends within a DER element")
    return start, start + size


def _length(size: int) -> bytes:
    if size < 0x80:
        return bytes([size])
    octets = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([0x80 | len(octets)]) + octets
