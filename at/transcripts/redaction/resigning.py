"""Signed texts of a modem with another identity, signed anew: JWT, %KEYGEN, %ATTESTTOKEN, PEM.

They are signed with one published key (`published_key`). Whoever reads this file can sign with it:
such a signature shows that a text is whole, and nothing about a device.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import UUID

from at.protocol.errors import ParseError
from at.tokens.key_formats import encode_base64url

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from at.tokens.attestation import Sign1
    from at.tokens.csr import KeyBody

Rename = Callable[[str], str]
"""Returns the made-up text for one that may name a device."""

_SENTENCE = b"The test key of cellagent: it is published, and its signature proves nothing."
PUBLISHED_PEM = """\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwfht+Z0+6E5Z55hOfQYwMXdNJ9Ey
ui8fpzpPaEcGx8V9wNW5HQgX7OQbvDVk07wDNsn3mULI2l2fpM8pmF9csA==
-----END PUBLIC KEY-----
"""
"""The public half of the published key."""
PUBLISHED_SPKI = "".join(PUBLISHED_PEM.splitlines()[1:-1])
_PUBLIC_DER = b64decode(PUBLISHED_SPKI)
PUBLISHED_KEY_ID = sha256(_PUBLIC_DER).hexdigest()
"""The `kid` of the published key."""
_SELF_DESCRIBED = bytes.fromhex("d9d9f7")  # tag 55799
_DEVICE_UUID, _DIGEST = 1, 3  # in both messages of the modem, and in that of %KEYGEN
_TEST_SERIAL = 1
_NAMES_A_DEVICE = frozenset(
    {
        "2.5.4.3",  # CN
        "2.5.4.4",  # SN, a person's
        "2.5.4.5",  # SERIALNUMBER
        "2.5.4.42",  # GN
        "0.9.2342.19200300.100.1.1",  # UID
        "1.2.840.113549.1.9.1",  # EMAILADDRESS
    }
)


@cache
def published_key() -> EllipticCurvePrivateKey:
    """Return the published P-256 key: SHA-256 of a sentence of this file."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(int.from_bytes(sha256(_SENTENCE).digest()), ec.SECP256R1())


def resigned_jwt(token: str, rename: Rename, rename_subject: Rename) -> tuple[str, str | None]:
    """Return the token with other names, and the `kid` that it had. Raises ParseError.

    `rename` applies to every text of the claims, `rename_subject` to `sub`.
    """
    from at.tokens.jwt import read_jwt, verify

    jwt = read_jwt(token)
    header = dict(jwt.header)
    if jwt.kid is not None:
        header["kid"] = PUBLISHED_KEY_ID
    # `jti` is the firmware's UUID and a random number.
    claims = {
        name: value if name == "jti" else _renamed(value, rename)
        for name, value in jwt.claims.items()
    }
    if isinstance(subject := jwt.claims.get("sub"), str):
        claims["sub"] = rename_subject(subject)
    if claims == jwt.claims and verify(jwt, published_key().public_key()):
        return token, None
    signed = f"{_padded(header)}.{_padded(claims)}"
    return f"{signed}.{encode_base64url(_raw_signature(signed.encode()))}", jwt.kid


def resigned_key(text: str, rename: Rename, rename_subject: Rename) -> tuple[str, str]:
    """Return another answer of %KEYGEN, and the `kid` of the key that it had. Raises ParseError."""
    from at.tokens.attestation import read_generated_key
    from at.tokens.csr import read_key_body

    answer = read_generated_key(text)
    key = read_key_body(answer.body)
    body = _other_request(key, rename_subject) if key.kind == "csr" else _PUBLIC_DER
    if answer.sign1 is None:
        return encode_base64url(body), answer.key_id
    payload = _other_message(answer.sign1.payload or b"", rename)
    if answer.digest_matches:
        payload = _with_item(payload, _DIGEST, sha256(body).digest())
    unchanged = body == answer.body and payload == answer.sign1.payload
    if unchanged and answer.sign1.signed_by(published_key().public_key(), b""):
        return text, answer.key_id
    return f"{encode_base64url(body)}.{_sign1(answer.sign1, payload, b'')}", answer.key_id


def resigned_attestation(text: str, rename: Rename) -> str:
    """Return another attestation token. Raises ParseError."""
    from at.tokens.attestation import read_attestation

    answer = read_attestation(text)
    body = _other_message(answer.body, rename)
    if answer.sign1 is None:
        return encode_base64url(body)
    if body == answer.body and answer.sign1.signed_by(published_key().public_key(), body):
        return text
    return f"{encode_base64url(body)}.{_sign1(answer.sign1, None, body)}"


def resigned_certificate(pem: str, rename: Rename) -> str:
    """Return a client certificate for the test key, with other names. Raises ParseError.

    An RSA certificate keeps its kind, since that decides what provisioning says of it.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        old = x509.load_pem_x509_certificate(pem.encode("latin-1"))
        is_rsa = isinstance(old.public_key(), rsa.RSAPublicKey)
        subject, issuer = (_other_name(name, rename) for name in (old.subject, old.issuer))
    except (ValueError, TypeError, UnsupportedAlgorithm) as wrong:
        raise ParseError("the certificate cannot be read") from wrong
    if old.serial_number == _TEST_SERIAL and subject == old.subject:
        return pem
    number = int.from_bytes(b"\xff" + b"".join(sha256(bytes([n])).digest() for n in range(8))) | 1
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(
            rsa.RSAPublicNumbers(65537, number).public_key()
            if is_rsa
            else published_key().public_key()
        )
        .serial_number(_TEST_SERIAL)
        .not_valid_before(old.not_valid_before_utc)
        .not_valid_after(old.not_valid_after_utc)
    )
    return builder.sign(published_key(), hashes.SHA256()).public_bytes(Encoding.PEM).decode("ascii")


def _other_request(key: KeyBody, rename: Rename) -> bytes:
    """Return a request for the test key in DER: name and key are others, the rest is as it was."""
    from cryptography import x509

    from at.tokens.csr import elements, sequence, without_null

    old, algorithm, _signature = elements(key.der)
    version, subject, _public_key, *rest = elements(old)
    name = x509.load_der_x509_csr(without_null(key.der)).subject
    if (other := _other_name(name, rename)) != name:
        subject = other.public_bytes()
    elif key.self_signed and key.key == published_key().public_key():
        return key.der
    signed = sequence(version, subject, _PUBLIC_DER, *rest)
    # A request that was not signed by its own key is not afterwards, either.
    signature = _der_signature(signed if key.self_signed else b"")
    return sequence(signed, algorithm, bytes([0x03, len(signature) + 1, 0]) + signature)


def _other_name(name: x509.Name, rename: Rename) -> x509.Name:
    from cryptography import x509

    def other(part: x509.NameAttribute[str | bytes]) -> x509.NameAttribute[str | bytes]:
        if part.oid.dotted_string not in _NAMES_A_DEVICE or not isinstance(part.value, str):
            return part
        return x509.NameAttribute(part.oid, rename(part.value))

    return x509.Name(
        x509.RelativeDistinguishedName(other(part) for part in rdn) for rdn in name.rdns
    )


def _other_message(data: bytes, rename: Rename) -> bytes:
    """Return a message of the modem with another device's UUID."""
    from at.tokens.attestation import load_described_cbor

    device = load_described_cbor(data, "the message", 5)[_DEVICE_UUID]
    if not isinstance(device, bytes):
        raise ParseError("the message names no device")
    other = UUID(rename(str(UUID(bytes=device)))).bytes
    return _with_item(data, _DEVICE_UUID, other)


def _with_item(data: bytes, index: int, item: bytes) -> bytes:
    import cbor2

    message = cbor2.loads(data)  # which keeps no tag of a self-described item
    items = list(message.value if isinstance(message, cbor2.CBORTag) else message)
    items[index] = item
    described = data.startswith(_SELF_DESCRIBED)
    return (_SELF_DESCRIBED if described else b"") + cbor2.dumps(items)


def _sign1(old: Sign1, payload: bytes | None, external_aad: bytes) -> str:
    """Return a COSE_Sign1 of the test key, which names the signer that the old one named."""
    from msgspec.structs import replace

    new = replace(old, payload=payload)
    signature = _raw_signature(new.to_be_signed(external_aad))
    return encode_base64url(replace(new, signature=signature).encode())


def _renamed(value: object, rename: Rename) -> object:
    """Return a JSON value with its texts renamed, the members' names excepted."""
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, list):
        return [_renamed(item, rename) for item in value]
    if isinstance(value, dict):
        return {name: _renamed(item, rename) for name, item in value.items()}
    return value


def _padded(value: Mapping[str, object]) -> str:
    """Return JSON in base64url; blanks at its end save the padding, as in the modem's tokens."""
    data = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    return encode_base64url(data + b" " * (-len(data) % 3))


def _der_signature(data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    return published_key().sign(data, ec.ECDSA(hashes.SHA256()))


def _raw_signature(data: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    r, s = decode_dss_signature(_der_signature(data))
    return r.to_bytes(32) + s.to_bytes(32)
