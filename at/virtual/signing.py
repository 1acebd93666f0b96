"""P-256 keys of the virtual modem and its signatures: PKCS#10, COSE_Sign1, JWT.

`cryptography` is imported when a key is first needed: a modem without keys starts without it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from typing import TYPE_CHECKING

from at.virtual.command_line import BadRequest
from at.virtual.kit import VirtualKit
from at.virtual.options import firmware_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


# AlgorithmIdentifier of ecdsa-with-SHA256 with the explicit NULL that the modem puts there,
# although RFC 5758 section 3.2 leaves it out.
_ECDSA_WITH_NULL = bytes.fromhex("300c06082a8648ce3d0403020500")

_PRINTABLE = re.compile(r"[A-Za-z0-9 '()+,./:=?-]+")
_UTF8, _PRINTABLE_STRING, _IA5_STRING = 0x0C, 0x13, 0x16

_SIZES = range(1, 2**16)

# Name -> its OID in DER, the type and the size in bytes of its text (RFC 5280, appendix A.1).
_SUBJECT_NAMES = {
    "CN": ("0603550403", _UTF8, range(1, 65)),
    "C": ("0603550406", _PRINTABLE_STRING, range(2, 3)),
    "L": ("0603550407", _UTF8, _SIZES),
    "ST": ("0603550408", _UTF8, _SIZES),
    "O": ("060355040a", _UTF8, _SIZES),
    "OU": ("060355040b", _UTF8, _SIZES),
    "SN": ("0603550404", _UTF8, _SIZES),
    "SERIALNUMBER": ("0603550405", _PRINTABLE_STRING, _SIZES),
    "EMAILADDRESS": ("06092a864886f70d010901", _IA5_STRING, _SIZES),
}

# Signature, non-repudiation, key encipherment and key agreement: bits of RFC 5280, section 4.2.1.3.
_USUAL_USAGE = "111010000"
_USAGE = re.compile("(?=.*1)[01]{9}")


def new_key() -> str:
    """Return the PEM of a new private key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, kind, plain).decode("ascii")


def load_key(pem: str) -> EllipticCurvePrivateKey | None:
    """Return the P-256 key of a PEM text; None if there is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_private_key(pem.encode("latin-1"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    return None


def identity_key(kit: VirtualKit) -> EllipticCurvePrivateKey:
    """Return the device identity key; it is made at first use, where a real kit has its maker's."""
    if not kit.saved.identity_key:
        kit.saved.identity_key = new_key()
    key = load_key(kit.saved.identity_key)
    assert key is not None
    return key


def public_der(key: EllipticCurvePrivateKey) -> bytes:
    """Return the SubjectPublicKeyInfo in DER."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def public_pem(key: EllipticCurvePrivateKey) -> str:
    """Return the SubjectPublicKeyInfo in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode("ascii")


def key_id(key: EllipticCurvePrivateKey) -> str:
    """Return the `kid` of a key: SHA-256 of its SubjectPublicKeyInfo in lower-case hex."""
    return hashlib.sha256(public_der(key)).hexdigest()


def sign_raw(key: EllipticCurvePrivateKey, message: bytes) -> bytes:
    """Return the ES256 signature, r and s in 32 bytes each (RFC 7518 section 3.4)."""
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    r, s = decode_dss_signature(_sign(key, message))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _sign(key: EllipticCurvePrivateKey, message: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    return key.sign(message, ec.ECDSA(hashes.SHA256()))


def signing_request(
    key: EllipticCurvePrivateKey, attributes: str, common_name: str, usage: str = ""
) -> bytes:
    """Return a PKCS#10 request in DER (RFC 2986), with the modem's NULL in its algorithm.

    Written here, as `cryptography.x509` would take half the time of a kit's first key to import.
    """
    version = _tlv(0x02, b"\0")
    named = version + _name(attributes, common_name)
    body = _tlv(0x30, named + public_der(key) + _requested(usage or _USUAL_USAGE))
    return _tlv(0x30, body + _ECDSA_WITH_NULL + _tlv(0x03, b"\0" + _sign(key, body)))


def _requested(usage: str) -> bytes:
    """Return the attribute extensionRequest, of a key usage that is not critical.

    Raises BadRequest.
    """
    if not _USAGE.fullmatch(usage):
        raise BadRequest
    bits = usage.rstrip("0")
    unused = -len(bits) % 8
    octets = (int(bits, 2) << unused).to_bytes((len(bits) + unused) // 8, "big")
    string = _tlv(0x04, _tlv(0x03, bytes([unused]) + octets))
    extensions = _tlv(0x30, _tlv(0x30, bytes.fromhex("0603551d0f") + string))
    return _tlv(0xA0, _tlv(0x30, bytes.fromhex("06092a864886f70d01090e") + _tlv(0x31, extensions)))


def _name(attributes: str, common_name: str) -> bytes:
    """Return a distinguished name in DER. Raises BadRequest."""
    if not attributes:
        attributes = f"CN={common_name}"
    parts = b""
    for piece in attributes.split(","):
        key, _, value = piece.partition("=")
        name, text = key.strip().upper(), value.encode()
        if name not in _SUBJECT_NAMES:
            raise BadRequest
        oid, kind, sizes = _SUBJECT_NAMES[name]
        if len(text) not in sizes or (
            kind == _PRINTABLE_STRING and not _PRINTABLE.fullmatch(value)
        ):
            raise BadRequest
        parts += _tlv(0x31, _tlv(0x30, bytes.fromhex(oid) + _tlv(kind, text)))
    return _tlv(0x30, parts)


def _tlv(tag: int, value: bytes) -> bytes:
    size = len(value)
    if size < 0x80:
        return bytes([tag, size]) + value
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + value


def nonce() -> bytes:
    """Return 16 random bytes."""
    return secrets.token_bytes(16)


SELF_DESCRIBED = 55799
COSE_SIGN1 = 18
IDENTITY_KEY = -2
_PROTECTED = bytes.fromhex("a10126")  # {1: -7}: ES256


def self_described(items: list[object]) -> bytes:
    """Return a message of the modem: an array under the CBOR tag 55799 (RFC 8949, 3.4.6)."""
    import cbor2

    return cbor2.dumps(cbor2.CBORTag(SELF_DESCRIBED, items))


def sign1(key: EllipticCurvePrivateKey, payload: bytes | None, external: bytes) -> bytes:
    """Return a COSE_Sign1 by the identity key; None is a detached payload.

    The modem signs that as null, not as an empty byte string as RFC 8152 has it.
    """
    import cbor2

    to_sign = cbor2.dumps(["Signature1", _PROTECTED, external, payload])
    unprotected = {4: cbor2.dumps(IDENTITY_KEY)}
    signature = sign_raw(key, to_sign)
    return cbor2.dumps(cbor2.CBORTag(COSE_SIGN1, [_PROTECTED, unprotected, payload, signature]))


def dotted(body: bytes, cose: bytes) -> str:
    """Return body and COSE message in base64url with a dot between, as the modem prints them."""
    return f"{_base64url(body)}.{_base64url(cose)}"


def device_claims(kit: VirtualKit, life_s: int) -> dict[str, str | int]:
    """Return what a token says of the device; no expiry without a life or without a time."""
    chip, now = kit.model.chip, kit.modem_time()
    claims: dict[str, str | int] = {
        "iss": f"{chip}.{kit.saved.uuid}",
        "jti": f"{chip}.{firmware_uuid(kit.firmware)}.{secrets.token_hex(16)}",
    }
    if life_s and now is not None:
        claims |= {"iat": int(now), "exp": int(now) + life_s}
    return claims


def web_token(key: EllipticCurvePrivateKey, claims: Mapping[str, object]) -> str:
    """Return a JWT. Its JSON texts end in blanks, so that no base64 needs padding."""
    header = {"typ": "JWT", "alg": "ES256", "kid": key_id(key)}
    return _jwt(key, *(text + b" " * (-len(text) % 3) for text in (_json(header), _json(claims))))


def plain_token(key: EllipticCurvePrivateKey, claims: Mapping[str, object]) -> str:
    """Return a JWT as an nRF93M1 makes it: no `kid`, and nothing that is padded."""
    return _jwt(key, _json({"alg": "ES256", "typ": "JWT"}), _json(claims))


def _jwt(key: EllipticCurvePrivateKey, *parts: bytes) -> str:
    signed = ".".join(map(_base64url, parts))
    return f"{signed}.{_base64url(sign_raw(key, signed.encode('ascii')))}"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
