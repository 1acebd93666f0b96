"""Signing requests and keys as %KEYGEN answers them."""

from __future__ import annotations

from at.tokens.attestation import read_generated_key
from at.tokens.csr import read_key_body
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
