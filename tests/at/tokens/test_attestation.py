"""%KEYGEN and %ATTESTTOKEN: vectors made here with keys of this run."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import replace

import cbor2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from at.commands.catalog import command_of
from at.protocol.errors import ParseError
from at.tokens.attestation import (
    read_attestation,
    read_generated_key,
    verified_attestation,
    verified_key,
)
from at.tokens.csr import read_key_body
from at.tokens.keys import key_der, key_id, load_public_key

IDENTITY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
UUID = bytes(range(16))
NONCE = bytes(range(16, 32))
DESCRIBED = bytes.fromhex("d9d9f7")
PROTECTED = bytes.fromhex("a10126")
ECDSA_NULL = bytes.fromhex("300c06082a8648ce3d0403020500")
ECDSA_ABSENT = bytes.fromhex("300a06082a8648ce3d040302")


def raw(key, data):
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def text(data):
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def cose(payload, aad, key=IDENTITY, signer=-2):
    signed = cbor2.dumps(["Signature1", PROTECTED, aad, payload])
    parts = [PROTECTED, {4: cbor2.dumps(signer)}, payload, raw(key, signed)]
    return cbor2.dumps(cbor2.CBORTag(18, parts))


def public(key):
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def request(key=OTHER, name="a test device", *, null=True):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    der = made.public_bytes(serialization.Encoding.DER)
    if not null:
        return der
    # As the modem does: explicit NULL parameters, two bytes more, so the length grows.
    place, head = der.rindex(ECDSA_ABSENT), 2 + (der[1] & 0x7F)
    inner = der[head:place] + ECDSA_NULL + der[place + len(ECDSA_ABSENT) :]
    return (
        b"\x30\x82" + len(inner).to_bytes(2) + inner
        if len(inner) > 255
        else (b"\x30\x81" + bytes([len(inner)]) + inner)
    )


def keygen(body, *, tag=17, aad=None, key=IDENTITY, digest=None):
    items = [9, UUID, cbor2.dumps(tag), digest or hashlib.sha256(body).digest(), NONCE]
    payload = DESCRIBED + cbor2.dumps(items)
    return f"{text(body)}.{text(cose(payload, body if aad is None else aad, key))}"


def attest(kind=4, *, key=IDENTITY, payload=None):
    body = DESCRIBED + cbor2.dumps([1, UUID, kind, NONCE, NONCE])
    return f"{text(body)}.{text(cose(payload, body, key))}"


@pytest.mark.parametrize("aad", [None, b""], ids=["body as external text", "no external text"])
def test_a_generated_key_is_read_and_verified_whichever_way_the_device_signs(aad):
    answer = read_generated_key(keygen(request(null=False), aad=aad))
    assert (answer.device_uuid, answer.nonce) == (
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        NONCE.hex(),
    )
    assert (answer.sec_tag, answer.message_id, answer.signer_name) == (17, 9, "device identity key")
    assert answer.digest_matches is True
    assert answer.self_signed is True
    assert answer.common_name == "a test device"
    assert answer.key_id == hashlib.sha256(public(OTHER)).hexdigest()
    assert answer.verified is None
    assert answer.reason.startswith("not verified, because")
    assert verified_key(answer, IDENTITY.public_key()).verified is True
    wrong = verified_key(answer, OTHER.public_key())
    assert (wrong.verified, bool(wrong.reason)) == (False, True)


def test_a_request_with_explicit_null_parameters_keeps_its_bytes():
    body = request(null=True)
    assert ECDSA_NULL in body
    answer = read_generated_key(keygen(body))
    assert answer.digest_matches
    assert answer.self_signed
    assert answer.body == body
    assert "BEGIN CERTIFICATE REQUEST" in answer.csr_pem


def test_a_public_key_body_is_read_too():
    answer = read_generated_key(keygen(public(OTHER)))
    assert (answer.body_type, answer.csr_pem, answer.self_signed) == ("public_key", None, None)
    assert key_der(load_public_key(answer.public_key_pem.encode())) == public(OTHER)


@pytest.mark.parametrize(
    ("tag", "expected"), [(52, 52), (16842753, 16842753), (-4, 4294967292), (2**31 - 1, 2**31 - 1)]
)
def test_large_tags_come_back_unsigned(tag, expected):
    assert read_generated_key(keygen(public(OTHER), tag=tag)).sec_tag == expected


def test_a_wrong_digest_is_told_and_never_verified():
    answer = read_generated_key(keygen(public(OTHER), digest=bytes(32)))
    assert answer.digest_matches is False
    assert verified_key(answer, IDENTITY.public_key()).verified is False


def test_a_request_that_another_key_signed_is_told():
    body = bytearray(request(null=False))
    body[-1] ^= 1
    assert read_key_body(bytes(body)).self_signed is False


def test_an_attestation_is_read_and_verified_over_a_null_payload():
    token = read_attestation(attest())
    assert (token.device_type, token.device_type_name) == (4, "nRF9161 LACA")
    assert token.verified is None
    assert verified_attestation(token, IDENTITY.public_key()).verified is True
    assert verified_attestation(token, OTHER.public_key()).verified is False
    assert read_attestation(attest(77)).device_type_name is None


def test_an_attestation_signed_over_an_empty_payload_does_not_pass():
    body = DESCRIBED + cbor2.dumps([1, UUID, 4, NONCE, NONCE])
    signed = cbor2.dumps(["Signature1", PROTECTED, body, b""])
    parts = [PROTECTED, {4: cbor2.dumps(-2)}, None, raw(IDENTITY, signed)]
    token = read_attestation(f"{text(body)}.{text(cbor2.dumps(cbor2.CBORTag(18, parts)))}")
    assert verified_attestation(token, IDENTITY.public_key()).verified is False


def test_a_token_without_a_signature_says_so():
    token = read_attestation(attest().partition(".")[0])
    assert "no signature" in token.reason
    assert verified_attestation(token, IDENTITY.public_key()) == token
    bare = read_generated_key(text(request(null=False)))
    assert "no signature" in bare.reason
    assert bare.self_signed is True


@pytest.mark.parametrize(
    "bad",
    [
        "",
        ".",
        "!.!",
        "AAAA",
        f"{text(public(OTHER))}.",
        f"{text(public(OTHER))}.AAAA",
        f"{text(public(OTHER))}.{text(cose(None, b''))}",
        f"{text(public(OTHER))}.{text(cose(b'xx', b''))}",
        f"{text(public(OTHER))}.{text(cbor2.dumps(cbor2.CBORTag(18, [1, 2])))}",
        f"{text(public(OTHER))}.{text(cose(DESCRIBED + cbor2.dumps([9, UUID]), b''))}",
        keygen(public(OTHER)) + "AAAA",
        text(public(ec.generate_private_key(ec.SECP384R1()))),
    ],
)
def test_what_is_no_generated_key_is_refused_whole(bad):
    with pytest.raises(ParseError):
        read_generated_key(bad)


GOOD = keygen(public(OTHER))


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("Aa0_.!"))
def test_a_changed_answer_is_refused_or_does_not_verify(place, mark):
    bad = GOOD[:place] + mark + GOOD[place + 1 :]
    try:
        answer = read_generated_key(bad)
    except ParseError:
        return
    # Who signed stands outside of what is signed.
    same = replace(answer, signer=-2) == read_generated_key(GOOD)
    assert same or verified_key(answer, IDENTITY.public_key()).verified is not True


def test_the_typed_commands_give_decoded_tokens():
    answer = command_of("AT%KEYGEN=17,2,0").parse([f'%KEYGEN: "{GOOD}"'])
    assert answer.key_id == key_id(OTHER.public_key())
    token = command_of("AT%ATTESTTOKEN").parse([f'%ATTESTTOKEN: "{attest()}"'])
    assert token.modem_uuid == "10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert replace(token, reason="x") != token
