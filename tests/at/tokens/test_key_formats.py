"""Base64url as modems write it, public keys, and raw signatures."""

from __future__ import annotations

import hashlib
from base64 import b64encode, urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import ParseError
from at.tokens.key_formats import (
    decode_base64url,
    key_der,
    key_id,
    key_pem,
    load_public_key,
    load_public_keys,
    verify_raw,
)
from tests.support.modem.signed_tokens import IDENTITY, OTHER, public, raw


@given(st.binary(max_size=60))
def test_both_alphabets_are_read_with_and_without_padding(data: bytes) -> None:
    for text in (b64encode(data).decode(), urlsafe_b64encode(data).decode()):
        assert decode_base64url(text, "it") == decode_base64url(text.rstrip("="), "it") == data


@pytest.mark.parametrize("bad", ["A", "AAAAA", "A B=", "s3cret!", "\u00e4\u00e4"])
def test_what_is_no_base64url_is_named_and_not_shown(bad: str) -> None:
    with pytest.raises(ParseError) as error:
        decode_base64url(bad, "the token")
    assert str(error.value) == "the token is not base64url"


def test_a_key_is_the_same_in_der_and_pem() -> None:
    key = OTHER.public_key()
    assert key_der(load_public_key(key_pem(key).encode())) == key_der(key) == public(OTHER)
    both = f"{key_pem(key)}a comment\n{key_pem(IDENTITY.public_key())}".encode()
    assert [key_der(one) for one in load_public_keys(both)] == [public(OTHER), public(IDENTITY)]
    assert [key_der(one) for one in load_public_keys(public(OTHER))] == [public(OTHER)]
    assert key_id(key) == hashlib.sha256(public(OTHER)).hexdigest()


@pytest.mark.parametrize(
    "bad",
    [b"", b"-----BEGIN PUBLIC KEY-----\n", public(ec.generate_private_key(ec.SECP384R1()))],
    ids=["nothing", "half a PEM", "another curve"],
)
def test_what_is_no_key_on_p256_is_refused(bad: bytes) -> None:
    with pytest.raises(ParseError):
        load_public_key(bad)


@pytest.mark.contract("C2")
@given(st.binary(max_size=40), st.integers(0, 63), st.integers(1, 255))
def test_a_signature_with_a_changed_byte_does_not_verify(data: bytes, at: int, mask: int) -> None:
    signature = raw(IDENTITY, data)
    key = IDENTITY.public_key()
    assert verify_raw(key, signature, data)
    assert not verify_raw(key, signature, data + b"x")
    assert not verify_raw(OTHER.public_key(), signature, data)
    changed = bytearray(signature)
    changed[at] ^= mask
    assert not verify_raw(key, bytes(changed), data)
    assert not verify_raw(key, signature[:32] + bytes(1) + signature[32:], data)


@pytest.mark.parametrize("bad", [b"", bytes(64), b"\x01" * 63, bytes(32) + b"\x01" * 32])
def test_what_has_not_the_shape_of_a_signature_does_not_verify(bad: bytes) -> None:
    assert not verify_raw(IDENTITY.public_key(), bad, b"data")
