"""COSE_Sign1: what is read whole, what is refused, and what a signature covers."""

from __future__ import annotations

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from signed_tokens import DESCRIBED, IDENTITY, OTHER, PROTECTED, cose

from at.protocol.errors import ParseError
from at.tokens.attestation import load, load_described, read_sign1


@given(payload=st.none() | st.binary(max_size=40), aad=st.binary(max_size=40))
def test_a_signature_covers_payload_and_external_text(payload: bytes | None, aad: bytes) -> None:
    sign1 = read_sign1(cose(payload, aad))
    assert (sign1.signer, sign1.payload) == (-2, payload)
    assert sign1.signed_by(IDENTITY.public_key(), aad + b"x", aad)
    assert not sign1.signed_by(IDENTITY.public_key(), aad + b"x")
    assert not sign1.signed_by(OTHER.public_key(), aad)


def message(*, tag: int = 18, parts: list[object] | None = None) -> bytes:
    whole = [PROTECTED, {4: cbor2.dumps(-2)}, b"x", bytes(64)]
    return cbor2.dumps(cbor2.CBORTag(tag, whole if parts is None else parts))


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\xff",
        message(tag=17),
        message(parts=[PROTECTED, {}, b"x"]),
        message(parts=[b"\xa1\x01\x27", {}, b"x", bytes(64)]),
        message(parts=[PROTECTED, [], b"x", bytes(64)]),
        message(parts=[PROTECTED, {4: "me"}, b"x", bytes(64)]),
        message(parts=[PROTECTED, {}, "x", bytes(64)]),
        message(parts=[PROTECTED, {}, b"x", bytes(63)]),
        message() + b"\x00",
    ],
)
def test_what_is_no_es256_message_is_refused(bad: bytes) -> None:
    with pytest.raises(ParseError):
        read_sign1(bad)


def test_a_message_without_a_key_id_names_no_signer() -> None:
    assert read_sign1(message(parts=[PROTECTED, {}, b"x", bytes(64)])).signer is None


def test_a_described_array_has_exactly_its_items() -> None:
    assert load_described(DESCRIBED + cbor2.dumps([1, 2]), "it", 2) == [1, 2]
    with pytest.raises(ParseError, match="it has not its 3 items"):
        load_described(DESCRIBED + cbor2.dumps([1, 2]), "it", 3)
    with pytest.raises(ParseError, match="bytes behind its end"):
        load(cbor2.dumps(1) + b"\x00", "it")
