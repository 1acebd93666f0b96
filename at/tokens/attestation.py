"""The answers of %KEYGEN and %ATTESTTOKEN, "B.C": a body and the COSE message about it.

The message is a COSE_Sign1 as the modem makes it (RFC 8152): read whole, verified with a known key.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Self
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from at.protocol.errors import ParseError
from at.protocol.values import PartlyHidden
from at.tokens.csr import read_key_body
from at.tokens.key_formats import decode_base64url, key_id, key_pem, verify_raw

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

_SIGN1_TAG = 18
_SELF_DESCRIBED_TAG = 55799
_ES256 = bytes.fromhex("a10126")  # {1: -7}
_KEY_HEADER = 4


class Sign1(Struct, frozen=True):
    """The four parts of a COSE_Sign1; `payload` None is a detached one, CBOR null."""

    protected: bytes
    signer: int | None
    payload: bytes | None
    signature: bytes

    def to_be_signed(self, external_aad: bytes) -> bytes:
        """Return what the signature covers: Sig_structure of RFC 8152, clause 4.4.

        A detached payload is null here, as the modem signs it, and not an empty text.
        """
        import cbor2

        structure = ["Signature1", self.protected, external_aad, self.payload]
        return cbor2.dumps(structure)

    def encode(self) -> bytes:
        """Return the tagged message, which `read_sign1` reads."""
        import cbor2

        unprotected = {} if self.signer is None else {_KEY_HEADER: cbor2.dumps(self.signer)}
        parts = [self.protected, unprotected, self.payload, self.signature]
        return cbor2.dumps(cbor2.CBORTag(_SIGN1_TAG, parts))

    def signed_by(self, key: EllipticCurvePublicKey, *external_aads: bytes) -> bool:
        """Return whether `key` signed it over any of these external texts."""
        return any(verify_raw(key, self.signature, self.to_be_signed(aad)) for aad in external_aads)


def read_sign1(data: bytes) -> Sign1:
    """Return the parts of a tagged COSE_Sign1. Raises ParseError."""
    import cbor2

    message = load_cbor(data, "the COSE message")
    if not isinstance(message, cbor2.CBORTag) or message.tag != _SIGN1_TAG:
        raise ParseError("the COSE message is no COSE_Sign1")
    parts = message.value
    if not isinstance(parts, list | tuple) or len(parts) != 4:
        raise ParseError("the COSE message has not its four parts")
    protected, unprotected, payload, signature = parts
    if protected != _ES256:
        raise ParseError("the COSE message is not signed with ES256")
    if not isinstance(payload, bytes | None):
        raise ParseError("the COSE message's payload is neither bytes nor null")
    if not isinstance(signature, bytes) or len(signature) != 64:
        raise ParseError("the COSE message's signature has not 64 bytes")
    return Sign1(protected, _signer(unprotected), payload, signature)


def load_cbor(data: bytes, what: str) -> object:
    """Return the only CBOR item of `data`; bytes behind it are an error. Raises ParseError."""
    import cbor2

    stream = io.BytesIO(data)
    try:
        item = cbor2.load(stream)
    except (cbor2.CBORDecodeError, ValueError, RecursionError) as wrong:
        raise ParseError(f"{what} is no CBOR") from wrong
    if stream.tell() != len(data):
        raise ParseError(f"{what} has bytes behind its end")
    return item


def load_described_cbor(data: bytes, what: str, size: int) -> list[object]:
    """Return the array of `size` items under the self-described tag. Raises ParseError."""
    import cbor2

    item = load_cbor(data, what)
    if isinstance(item, cbor2.CBORTag) and item.tag == _SELF_DESCRIBED_TAG:
        item = item.value
    if not isinstance(item, list | tuple) or len(item) != size:
        raise ParseError(f"{what} has not its {size} items")
    return list(item)


def _signer(unprotected: object) -> int | None:
    if not isinstance(unprotected, Mapping):  # within a tag, cbor2 gives a frozen one
        raise ParseError("the COSE message's unprotected header is no map")
    key = unprotected.get(_KEY_HEADER)
    if key is None:
        return None
    signer = load_cbor(key, "the COSE message's key id") if isinstance(key, bytes) else key
    if not isinstance(signer, int):
        raise ParseError("the COSE message's key id is no number")
    return signer


_LONGEST = 16384
_NO_KEY = "not checked, because no key that signs attestations is named"
_NO_SIGNATURE = "not checked, because the modem sent no signature"
_WRONG_KEY = "wrong: none of the keys that are named made this signature"
_WRONG_DIGEST = "wrong: what was signed is the digest of another answer"
SIGNERS = {-2: "device identity key", -4: "Nordic base production key", -5: "Nordic base R&D key"}
DEVICE_TYPES = {
    1: "nRF9160 SIAA",
    2: "nRF9160 SIBA",
    3: "nRF9160",
    4: "nRF9161 LACA",
    5: "nRF9131 LACA",
    6: "nRF9151 LACA",
}


class Signed(PartlyHidden, frozen=True):
    """The fields of both answers. `verified` None: not checked, and `reason` says why."""

    device_uuid: str | None
    nonce: str | None
    message_id: int | None
    signer: int | None = None
    verified: bool | None = None
    reason: str = _NO_SIGNATURE
    body: bytes = b""
    sign1: Sign1 | None = None

    hidden: ClassVar[frozenset[str]] = frozenset({"body", "sign1"})

    @property
    def signer_name(self) -> str | None:
        """The key that signed it, as the message names it."""
        return None if self.signer is None else SIGNERS.get(self.signer, f"key {self.signer}")

    def checked_with(self, keys: Sequence[EllipticCurvePublicKey]) -> Self:
        """Return the answer with its signature checked: one of `keys` must have made it.

        Without a key, or without a signature, it stays not checked.
        """
        if self.sign1 is None or not keys:
            return self
        by_a_key = any(self._signed_by(self.sign1, key) for key in keys)
        fault = self._wrong_body() if by_a_key else _WRONG_KEY
        return replace(self, verified=not fault, reason=fault)

    def _signed_by(self, sign1: Sign1, key: EllipticCurvePublicKey) -> bool:
        return sign1.signed_by(key, self.body)

    def _wrong_body(self) -> str:
        """Return why a right signature says nothing about the body, "" where it does."""
        return ""


class GeneratedKey(Signed, frozen=True):
    """Answer of %KEYGEN. `sha256` is the digest of the body, as the modem signed it.

    `digest_matches` and `self_signed` need no other key: they are always checked.
    """

    sec_tag: int | None = None
    sha256: str | None = None
    digest_matches: bool | None = None
    body_type: str = "csr"
    subject: str | None = None
    common_name: str | None = None
    self_signed: bool | None = None
    key_id: str = ""
    public_key_pem: str = ""
    csr_pem: str | None = None

    derived: ClassVar[tuple[str, ...]] = ("signer_name",)

    def _signed_by(self, sign1: Sign1, key: EllipticCurvePublicKey) -> bool:
        # Devices differ in what they sign beside the payload: the body, or nothing.
        return sign1.signed_by(key, self.body, b"")

    def _wrong_body(self) -> str:
        return "" if self.digest_matches else _WRONG_DIGEST


class AttestationToken(Signed, frozen=True):
    """Answer of %ATTESTTOKEN."""

    device_type: int | None = None
    modem_uuid: str | None = None

    derived: ClassVar[tuple[str, ...]] = ("device_type_name", "signer_name")

    @property
    def device_type_name(self) -> str | None:
        """The chip by its number; None for an unknown number."""
        return DEVICE_TYPES.get(self.device_type) if self.device_type is not None else None


def read_generated_key(text: str) -> GeneratedKey:
    """Return the decoded answer of %KEYGEN. Raises ParseError.

    A wrong digest or self-signature is a field of the value: the caller decides.
    """
    body, sign1 = _parts(text, "%KEYGEN")
    key = read_key_body(body)
    generated = GeneratedKey(
        None,
        None,
        None,
        body=body,
        body_type=key.kind,
        subject=key.subject,
        common_name=key.common_name,
        self_signed=key.self_signed,
        key_id=key_id(key.key),
        public_key_pem=key_pem(key.key),
        csr_pem=key.csr_pem,
    )
    if sign1 is None:
        return generated
    if sign1.payload is None:
        raise ParseError("%KEYGEN: the COSE message carries no payload")
    items = load_described_cbor(sign1.payload, "%KEYGEN: the payload", 5)
    digest = _bytes(items[3], 32, "%KEYGEN: the digest")
    return replace(
        generated,
        device_uuid=_uuid(items[1], "%KEYGEN: the device's UUID"),
        nonce=_bytes(items[4], 16, "%KEYGEN: the nonce").hex(),
        message_id=_number(items[0], "%KEYGEN: the message id"),
        signer=sign1.signer,
        reason=_NO_KEY,
        sign1=sign1,
        sec_tag=_sec_tag(items[2]),
        sha256=digest.hex(),
        digest_matches=digest == sha256(body).digest(),
    )


def read_attestation(text: str) -> AttestationToken:
    """Return the decoded answer of %ATTESTTOKEN. Raises ParseError."""
    body, sign1 = _parts(text, "%ATTESTTOKEN")
    items = load_described_cbor(body, "%ATTESTTOKEN: the message", 5)
    if sign1 is not None and sign1.payload is not None:
        raise ParseError("%ATTESTTOKEN: the COSE message carries a payload of its own")
    return AttestationToken(
        device_uuid=_uuid(items[1], "%ATTESTTOKEN: the device's UUID"),
        nonce=_bytes(items[4], 16, "%ATTESTTOKEN: the nonce").hex(),
        message_id=_number(items[0], "%ATTESTTOKEN: the message type"),
        signer=None if sign1 is None else sign1.signer,
        reason=_NO_SIGNATURE if sign1 is None else _NO_KEY,
        body=body,
        sign1=sign1,
        device_type=_number(items[2], "%ATTESTTOKEN: the device type"),
        modem_uuid=_uuid(items[3], "%ATTESTTOKEN: the modem's UUID"),
    )


def _parts(text: str, name: str) -> tuple[bytes, Sign1 | None]:
    if len(text) > _LONGEST:
        raise ParseError(f"{name}: the answer is longer than {_LONGEST} characters")
    first, dot, second = text.partition(".")
    body = decode_base64url(first, f"{name}: the body")
    sign1 = read_sign1(decode_base64url(second, f"{name}: the COSE message")) if dot else None
    return body, sign1


def _sec_tag(item: object) -> int:
    number = load_cbor(item, "%KEYGEN: the tag") if isinstance(item, bytes) else item
    number = _number(number, "%KEYGEN: the tag")
    return number + 2**32 if number < 0 else number  # a tag above 2^31, signed by the modem


def _number(item: object, what: str) -> int:
    if not isinstance(item, int) or isinstance(item, bool):
        raise ParseError(f"{what} is no number")
    return item


def _bytes(item: object, size: int, what: str) -> bytes:
    if not isinstance(item, bytes) or len(item) != size:
        raise ParseError(f"{what} has not {size} bytes")
    return item


def _uuid(item: object, what: str) -> str:
    return str(UUID(bytes=_bytes(item, 16, what)))
