"""What a modem signed, with another identity: whole, and signed by the published key."""

from __future__ import annotations

import base64
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import ParseError
from at.tokens.attestation import read_attestation, read_generated_key
from at.tokens.jwt import read_jwt, verify
from at.tokens.key_formats import key_id, key_pem
from at.transcripts.redaction import resigning
from at.transcripts.redaction.resigning import (
    PUBLISHED_KEY_ID,
    PUBLISHED_PEM,
    published_key,
    resigned_attestation,
    resigned_certificate,
    resigned_jwt,
    resigned_key,
)
from tests.support.modem.virtual_modems import ask, quoted, switched_on

IMEI = "352656100367872"
MADE = "00000000-0000-4000-8000-000000000001"
KEYS = [published_key().public_key()]
MODELS = ["nrf9160", "nrf9161"]


def renamed(text: str) -> str:
    """Return a text in which every UUID is the made-up one."""
    try:
        UUID(text[-36:])
    except ValueError:
        return text
    return text[:-36] + MADE


def answered(model: str, line: str) -> str:
    return quoted(ask(switched_on(model=model, imei=IMEI), line)[0])


def test_the_constants_are_those_of_the_published_key() -> None:
    assert key_pem(published_key().public_key()) == PUBLISHED_PEM
    assert key_id(published_key().public_key()) == PUBLISHED_KEY_ID


@pytest.mark.parametrize("model", MODELS)
def test_a_token_keeps_its_other_claims(model: str) -> None:
    old = answered(model, f'AT%JWT=0,0,"nrf-{IMEI}","aud"')
    new, kid = resigned_jwt(old, renamed, lambda _: "device-0001")
    before, after = read_jwt(old), read_jwt(new)
    assert kid == before.kid
    assert after.header == {**before.header, "kid": PUBLISHED_KEY_ID}
    assert after.claims == {**before.claims, "iss": f"{before.chip}.{MADE}", "sub": "device-0001"}
    assert verify(after, KEYS[0])
    assert "=" not in new


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("line", ["AT%ATTESTTOKEN", f'AT%ATTESTTOKEN="{"ab" * 16}"'])
def test_an_attestation_keeps_all_but_the_device(model: str, line: str) -> None:
    old = answered(model, line)
    new = resigned_attestation(old, renamed)
    before, after = read_attestation(old), read_attestation(new).checked_with(KEYS)
    assert after.verified
    assert after.device_uuid == MADE
    assert len(new) == len(old)
    assert new[:8] == old[:8], "a self-described item stays one"
    kept = ("nonce", "message_id", "signer", "device_type", "modem_uuid")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "arguments", ["7,2,0", "7,2,1", '7,2,0,"O=Acme,CN=352656100367872,C=NO"', "7,8,1"]
)
def test_a_generated_key_keeps_all_but_its_names_and_its_key(model: str, arguments: str) -> None:
    old = answered(model, f"AT%KEYGEN={arguments}")
    new, kid = resigned_key(old, renamed, lambda text: renamed(text) if "-" in text else "other")
    before, after = read_generated_key(old), read_generated_key(new).checked_with(KEYS)
    assert after.verified
    assert after.digest_matches
    assert after.self_signed == before.self_signed
    assert kid == before.key_id
    assert after.key_id == PUBLISHED_KEY_ID
    assert after.device_uuid == MADE
    kept = ("nonce", "message_id", "signer", "sec_tag", "body_type")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    if "Acme" in arguments:
        assert after.subject == "C=NO,CN=other,O=Acme"
    if before.csr_pem is not None:
        assert b"\x05\x00\x03" in after.body, "the modem's NULL behind the algorithm stays"


def test_what_was_wrong_stays_wrong() -> None:
    body, _, cose = answered("nrf9161", "AT%KEYGEN=7,2,0").partition(".")
    data = bytearray(base64.urlsafe_b64decode(body + "=="))
    data[-1] ^= 1
    broken = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    new, _kid = resigned_key(f"{broken}.{cose}", renamed, renamed)
    after = read_generated_key(new)
    assert (after.digest_matches, after.self_signed) == (False, False)


@pytest.mark.parametrize("line", ["AT%KEYGEN=7,2,0", "AT%ATTESTTOKEN", "AT%JWT"])
def test_what_was_signed_anew_is_left_as_it_is(line: str) -> None:
    def again(text: str) -> str:
        if "JWT" in line:
            return resigned_jwt(text, renamed, renamed)[0]
        if "KEYGEN" in line:
            return resigned_key(text, renamed, renamed)[0]
        return resigned_attestation(text, renamed)

    new = again(answered("nrf9161", line))
    assert again(new) == new


@pytest.mark.parametrize("kind", ["RSA", "EC"])
def test_a_certificate_keeps_its_issuer_its_time_and_the_kind_of_its_key(kind: str) -> None:
    from datetime import UTC, datetime

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding

    key = (
        rsa.generate_private_key(65537, 2048)
        if kind == "RSA"
        else ec.generate_private_key(ec.SECP256R1())
    )
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    old = (
        x509.CertificateBuilder()
        .subject_name(x509.Name.from_rfc4514_string(f"O=Acme,CN={IMEI}"))
        .issuer_name(x509.Name.from_rfc4514_string("O=Acme"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin.replace(year=2036))
        .sign(key, hashes.SHA256())
    )
    pem = old.public_bytes(Encoding.PEM).decode()
    new_pem = resigned_certificate(pem, lambda _: "device-0001")
    new = x509.load_pem_x509_certificate(new_pem.encode())
    assert new.subject.rfc4514_string() == "O=Acme,CN=device-0001"
    assert new.issuer == old.issuer
    assert new.not_valid_after_utc == old.not_valid_after_utc
    assert isinstance(new.public_key(), rsa.RSAPublicKey) == (kind == "RSA")
    assert new.public_key() != old.public_key()
    assert resigned_certificate(new_pem, lambda text: text) == new_pem


@given(text=st.text("abcdefAZ09_-.", max_size=300))
def test_what_cannot_be_read_is_a_parse_error(text: str) -> None:
    for read in (
        lambda: resigned_jwt(text, renamed, renamed),
        lambda: resigned_key(text, renamed, renamed),
        lambda: resigned_attestation(text, renamed),
        lambda: resigning.resigned_certificate(text, renamed),
    ):
        with pytest.raises(ParseError):
            read()
