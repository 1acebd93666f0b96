"""COSE_Sign1 as the modem makes it (RFC 8152): read whole, verified with a known key."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from at.protocol.errors import ParseError
from at.tokens.key_formats import verify_raw

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

_SIGN1_TAG = 18
_SELF_DESCRIBED_TAG = 55799
_ES256 = bytes.fromhex("a10126")  # {1: -7}
_KEY_HEADER = 4


@dataclass(frozen=True, slots=True)
class Sign1:
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

    def signed_by(self, key: EllipticCurvePublicKey, *external_aads: bytes) -> bool:
        """Return whether `key` signed it over any of these external texts."""
        return any(verify_raw(key, self.signature, self.to_be_signed(aad)) for aad in external_aads)


def read_sign1(data: bytes) -> Sign1:
    """Return the parts of a tagged COSE_Sign1. Raises ParseError."""
    import cbor2

    message = load(data, "the COSE message")
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


def load(data: bytes, what: str) -> Any:
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


def load_described(data: bytes, what: str, size: int) -> list[Any]:
    """Return the array of `size` items under the self-described tag. Raises ParseError."""
    import cbor2

    item = load(data, what)
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
    signer = load(key, "the COSE message's key id") if isinstance(key, bytes) else key
    if not isinstance(signer, int):
        raise ParseError("the COSE message's key id is no number")
    return signer
