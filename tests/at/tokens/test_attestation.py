"""%KEYGEN, %ATTESTTOKEN and their COSE_Sign1: vectors made here with keys of this run."""

from __future__ import annotations

import hashlib
from itertools import count

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from at.protocol.errors import ParseError
from at.tokens.attestation import (
    load_cbor,
    load_described_cbor,
    read_attestation,
    read_generated_key,
    read_sign1,
)
from tests.support.modem.signed_tokens import (
    DESCRIBED,
    IDENTITY,
    NONCE,
    OTHER,
    PROTECTED,
    UUID,
    attest,
    cose,
    keygen,
    public,
    raw,
    request,
    text,
)


@pytest.mark.contract("C2")
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
    assert answer.reason.startswith("not checked, because")
    assert answer.checked_with([IDENTITY.public_key()]).verified is True
    assert answer.checked_with([OTHER.public_key(), IDENTITY.public_key()]).verified is True
    assert answer.checked_with([]) == answer
    wrong = answer.checked_with([OTHER.public_key()])
    assert (wrong.verified, bool(wrong.reason)) == (False, True)


@pytest.mark.parametrize(
    ("tag", "expected"),
    [(0, 0), (52, 52), (2**24, 2**24), (-4, 4294967292), (2**31 - 1, 2**31 - 1)],
)
def test_large_tags_come_back_unsigned(tag, expected):
    assert read_generated_key(keygen(public(OTHER), tag=tag)).sec_tag == expected


def test_a_wrong_digest_is_told_and_never_verified():
    answer = read_generated_key(keygen(public(OTHER), digest=bytes(32)))
    assert answer.digest_matches is False
    wrong = answer.checked_with([IDENTITY.public_key()])
    assert (wrong.verified, "digest" in wrong.reason) == (False, True)
    assert "none of the keys" in answer.checked_with([OTHER.public_key()]).reason


def test_an_attestation_is_read_and_verified_over_a_null_payload():
    token = read_attestation(attest())
    assert (token.device_type, token.device_type_name) == (4, "nRF9161 LACA")
    assert token.verified is None
    assert token.checked_with([IDENTITY.public_key()]).verified is True
    assert token.checked_with([OTHER.public_key()]).verified is False
    assert read_attestation(attest(77)).device_type_name is None


def test_an_attestation_signed_over_an_empty_payload_does_not_pass():
    body = DESCRIBED + cbor2.dumps([1, UUID, 4, NONCE, NONCE])
    signed = cbor2.dumps(["Signature1", PROTECTED, body, b""])
    parts = [PROTECTED, {4: cbor2.dumps(-2)}, None, raw(IDENTITY, signed)]
    token = read_attestation(f"{text(body)}.{text(cbor2.dumps(cbor2.CBORTag(18, parts)))}")
    assert token.checked_with([IDENTITY.public_key()]).verified is False


def test_a_token_without_a_signature_says_so():
    token = read_attestation(attest().partition(".")[0])
    assert "no signature" in token.reason
    assert token.checked_with([IDENTITY.public_key()]) == token
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
    ids=count(),  # a signature is another in each worker
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
    assert same or answer.checked_with([IDENTITY.public_key()]).verified is not True


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


def test_a_signer_that_has_no_name_here_is_shown_by_its_number() -> None:
    body = DESCRIBED + cbor2.dumps([1, UUID, 4, NONCE, NONCE])
    assert read_attestation(f"{text(body)}.{text(cose(None, body, signer=-9))}").signer_name == (
        "key -9"
    )


def test_an_attestation_has_one_body_and_numbers_are_numbers() -> None:
    body = DESCRIBED + cbor2.dumps([1, UUID, 4, NONCE, NONCE])
    with pytest.raises(ParseError, match="carries a payload of its own"):
        read_attestation(attest(payload=body))
    with pytest.raises(ParseError, match="the device type is no number"):
        read_attestation(attest(True))
    with pytest.raises(ParseError, match="longer than 16384 characters"):
        read_attestation("A" * 20_000)


def test_a_described_array_has_exactly_its_items() -> None:
    assert load_described_cbor(DESCRIBED + cbor2.dumps([1, 2]), "it", 2) == [1, 2]
    with pytest.raises(ParseError, match="it has not its 3 items"):
        load_described_cbor(DESCRIBED + cbor2.dumps([1, 2]), "it", 3)
    with pytest.raises(ParseError, match="it has not its 2 items"):
        load_described_cbor(cbor2.dumps(cbor2.CBORTag(7, [1, 2])), "it", 2)
    with pytest.raises(ParseError, match="bytes behind its end"):
        load_cbor(cbor2.dumps(1) + b"\x00", "it")
