"""What %KEYGEN answers: a certificate signing request (PKCS#10), or a public key, both DER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from at.errors import ParseError
from at.tokens.keys import key_pem, load_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey


@dataclass(frozen=True, slots=True)
class KeyBody:
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
    def pem(self) -> str:
        """The body in PEM, made of the bytes as sent."""
        from base64 import encodebytes

        label = "CERTIFICATE REQUEST" if self.kind == "csr" else "PUBLIC KEY"
        text = encodebytes(self.der).decode().replace("\n", "")
        lines = "\n".join(text[place : place + 64] for place in range(0, len(text), 64))
        return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"

    @property
    def public_key_pem(self) -> str:
        """The public key in PEM."""
        return key_pem(self.key)


def read_key_body(der: bytes) -> KeyBody:
    """Return the request or key in `der`. Raises ParseError if it is neither.

    The modem's requests carry explicit NULL parameters; only reading them needs care, and
    whatever is signed or hashed is the bytes as they came.
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
        request = x509.load_der_x509_csr(der)
        key = request.public_key()
        names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        subject = request.subject.rfc4514_string()
        self_signed = request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise ParseError("the signing request cannot be read") from wrong
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ParseError("the signing request's key is not on the curve P-256")
    common_name = str(names[0].value) if names else None
    return KeyBody("csr", der, key, subject, common_name, self_signed)
