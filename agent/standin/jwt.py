"""JSON Web Tokens of clause D10: ES256 only, checked byte by byte.

RFC 7519, RFC 7518 clause 3.4. Written without a JWT library: the client uses one, and a defect
that both shared would not be noticed.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

LEEWAY_S = 60
_LONGEST = 8192
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the group of P-256: FIPS 186-4, D.1.2.3."""


class BadToken(Exception):
    """The token is malformed, of another algorithm, expired, not valid yet or wrongly signed."""


@dataclass(frozen=True, slots=True)
class Token:
    """A JWT that is parsed and not yet verified."""

    claims: Mapping[str, str]
    """Those that were looked for and that it has."""
    signed: bytes
    signature: bytes

    def is_signed_by(self, public_pem: str) -> bool:
        """Return whether the P-256 key of `public_pem` made the signature."""
        key = serialization.load_pem_public_key(public_pem.encode())
        if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != "secp256r1":
            return False
        r = int.from_bytes(self.signature[:32], "big")
        s = int.from_bytes(self.signature[32:], "big")
        try:
            key.verify(encode_dss_signature(r, s), self.signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def parse(text: str, now_s: float, names: Sequence[str] = ("sub", "iss", "aud")) -> Token:
    """Return the parts of a JWT whose form, algorithm and times are valid. Raises BadToken.

    The claims of these names are texts, if it has them.
    """
    if len(text) > _LONGEST:
        raise BadToken("the token is too long")
    parts = text.split(".")
    if len(parts) != 3:
        raise BadToken("a JWT has three parts")
    header = _object(parts[0])
    if header.get("alg") != "ES256":
        raise BadToken("ES256 is the only algorithm")
    if "crit" in header or header.get("typ", "JWT") != "JWT":
        raise BadToken("the header asks for what is not known here")
    signature = _decode(parts[2])
    if len(signature) != 64:
        raise BadToken("an ES256 signature is R and S, 64 bytes")
    r, s = signature[:32], signature[32:]
    if not all(0 < int.from_bytes(half, "big") < _ORDER for half in (r, s)):
        raise BadToken("R or S is out of range")
    claims = _object(parts[1])
    _check_times(claims, now_s)
    return Token(_texts(claims, names), f"{parts[0]}.{parts[1]}".encode(), signature)


def sign(claims: Mapping[str, object], private_pem: str) -> str:
    """Return a JWT signed with ES256."""
    key = serialization.load_pem_private_key(private_pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not an EC key")
    body = ".".join(
        _encode(json.dumps(part, separators=(",", ":")).encode())
        for part in ({"alg": "ES256", "typ": "JWT"}, claims)
    )
    r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
    return body + "." + _encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def new_key() -> tuple[str, str]:
    """Return a new P-256 key as private (PKCS 8) and public PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return private_pem(key), public_pem(key.public_key())


def private_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Return a private key as PEM (PKCS 8), not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def public_pem(key: ec.EllipticCurvePublicKey) -> str:
    """Return a public key as PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def _texts(claims: Mapping[str, object], names: Sequence[str]) -> dict[str, str]:
    texts = {}
    for name in names:
        value = claims.get(name, "absent")
        if not isinstance(value, str) or not value:
            raise BadToken(f"{name} is text")
        if name in claims:
            texts[name] = value
    return texts


def _check_times(claims: Mapping[str, object], now_s: float) -> None:
    times = []
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name, now_s)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) == math.inf:
            raise BadToken(f"{name} is a number")
        times.append(value)
    expires, *begins = times
    if expires < now_s - LEEWAY_S:
        raise BadToken("the token has expired")
    if max(begins) > now_s + LEEWAY_S:
        raise BadToken("the token is not valid yet")


def _object(part: str) -> dict[str, object]:
    try:
        # As text: json would accept bytes of UTF-16 as well, RFC 7519, 7.2 has UTF-8 only.
        text = _decode(part).decode()
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadToken("a part is no JSON object") from error
    if not isinstance(value, dict):
        raise BadToken("a part is no JSON object")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Raise on a name that occurs twice (RFC 7519, 4): readers differ in which one they use."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse_constant(name: str) -> None:
    """Raise on NaN and Infinity, which are not JSON."""
    raise ValueError(name)


def _decode(part: str) -> bytes:
    # b64decode accepts spare bits; only the canonical form is valid.
    try:
        decoded = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise BadToken("a part is not base64url") from error
    if _encode(decoded) != part:
        raise BadToken("a part is not base64url")
    return decoded


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
