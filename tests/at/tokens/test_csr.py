"""Signing requests and keys as %KEYGEN answers them."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from at.protocol.errors import ParseError
from at.tokens.attestation import read_generated_key
from at.tokens.csr import elements, read_key_body, sequence
from at.tokens.key_formats import key_der, load_public_key
from tests.support.modem.signed_tokens import ECDSA_NULL, OTHER, keygen, public, request


def test_a_request_with_explicit_null_parameters_keeps_its_bytes():
    body = request(null=True)
    assert ECDSA_NULL in body
    answer = read_generated_key(keygen(body))
    assert answer.digest_matches
    assert answer.self_signed
    assert answer.body == body
    assert "BEGIN CERTIFICATE REQUEST" in answer.csr_pem


def test_a_request_that_another_key_signed_is_told():
    body = bytearray(request(null=False))
    body[-1] ^= 1
    assert read_key_body(bytes(body)).self_signed is False


def test_a_public_key_body_is_read_too():
    answer = read_generated_key(keygen(public(OTHER)))
    assert (answer.body_type, answer.csr_pem, answer.self_signed) == ("public_key", None, None)
    assert key_der(load_public_key(answer.public_key_pem.encode())) == public(OTHER)


@pytest.mark.parametrize("mend", [lambda der: der + b"\0", lambda der: der[:-1], lambda _: b"\x30"])
def test_a_request_that_is_not_one_der_sequence_is_refused(mend) -> None:
    with pytest.raises(ParseError):
        read_key_body(mend(request(null=True)))


@pytest.mark.parametrize("size", [0x7F, 0x80, 0xFF, 0x100, 0x10000])
def test_a_sequence_of_any_length_is_read_as_it_was_written(size: int) -> None:
    parts = [b"\x05\x00"] * (size // 2) + [b"\x04\x01A"] * (size % 2)
    assert elements(sequence(*parts)) == parts


def test_a_request_of_a_version_that_there_is_not_is_refused() -> None:
    body = request(null=True).replace(b"\x02\x01\x00", b"\x02\x01\x07", 1)
    with pytest.raises(ParseError):
        read_key_body(body)


def test_a_request_for_a_key_on_another_curve_is_refused() -> None:
    with pytest.raises(ParseError):
        read_key_body(request(ec.generate_private_key(ec.SECP384R1()), null=False))
