"""A modem's JWTs: read leniently, verified over the bytes as signed."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from at.commands.catalog import command_of
from at.commands.jwt import MakeJwt
from at.protocol.errors import NoModemTime, ParseError, UnsafeArgument
from at.protocol.values import as_json
from at.tokens.jwt import read_jwt, verify
from at.tokens.key_formats import key_id

KEY = ec.generate_private_key(ec.SECP256R1())
CLAIMS = {
    "iss": "nRF9160.50363154-3931-44f0-8000-000000000001",
    "jti": "nRF9160.50363154-3931-44f0-8000-000000000002.00",
    "iat": 1700000000,
    "exp": 1700000600,
    "sub": "a test device",
}


def part(value, pad=0):
    data = value if isinstance(value, bytes) else json.dumps(value).encode() + b" " * pad
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def make(claims=CLAIMS, *, alg="ES256", pad=2, der=False, key=KEY):
    header = {"typ": "JWT", "alg": alg, "kid": key_id(key.public_key())}
    signed = f"{part(header, pad)}.{part(claims, pad)}"
    signature = key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
    if not der:
        r, s = decode_dss_signature(signature)
        signature = r.to_bytes(32) + s.to_bytes(32)
    return f"{signed}.{part(signature)}"


@pytest.mark.contract("D10.3")
@pytest.mark.parametrize("pad", [0, 1, 2])
def test_a_token_padded_with_blanks_is_read_and_verified_over_its_bytes(pad):
    text = make(pad=pad)
    token = read_jwt(text)
    assert token.claims == CLAIMS
    assert token.device_uuid == "50363154-3931-44f0-8000-000000000001"
    assert token.chip == "nRF9160"
    assert token.kid == key_id(KEY.public_key())
    assert token.expires_at.isoformat() == "2023-11-14T22:23:20+00:00"
    assert token.token == text
    assert verify(token, KEY.public_key())
    assert not verify(token, ec.generate_private_key(ec.SECP256R1()).public_key())


@pytest.mark.contract("D10.2")
@pytest.mark.parametrize(
    "bad",
    [
        "",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "....",
        "e30.e30.",
        "é.é.é",
        "W10.W10.AA",
        make(alg="RS256"),
        make(alg="none"),
        make(der=True),
        make({"iss": 5}),
        make({"iss": ["a"], "exp": 1}),
        make({"exp": "soon"}),
        make({"iat": True}),
        make({"exp": -1}),
        make({"jti": 5}),
        make({"sub": "x" * 9000}),
        f"{part(b'[' * 5000)}.{part({})}.{part(bytes(64))}",
        f"{part(b'{')}.{part({})}.{part(bytes(64))}",
        f"{part([])}.{part({})}.{part(bytes(64))}",
        "x" * 9000,
    ],
    ids=lambda bad: bad[:8],  # a signature is another one each time
)
def test_what_is_no_es256_token_is_refused_and_not_shown(bad):
    with pytest.raises(ParseError) as refused:
        read_jwt(bad)
    assert not bad or bad not in str(refused.value)


def test_a_token_without_the_expiry_that_was_asked_for_is_an_error():
    line = f'%JWT: "{make({"iss": "x"})}"'
    with pytest.raises(NoModemTime) as refused:
        MakeJwt(exp_delta_s=600).parse([line])
    assert "AT+CCLK" in refused.value.hint
    with pytest.raises(NoModemTime):
        command_of('AT%JWT=0,600,"",""').parse([line])
    for command in ('AT%JWT=0,0,"",""', "AT%JWT=,,,", "AT%JWT"):
        assert command_of(command).parse([line]).expires_at is None


def test_the_token_itself_shows_in_no_repr_and_no_json():
    token = read_jwt(make())
    signature = make().rpartition(".")[2][:20]
    shown = repr(token) + json.dumps(as_json(token))
    assert signature not in shown
    assert token.signature.hex() not in shown
    assert as_json(token)["claims"]["sub"] == "a test device"
    assert as_json(token)["issued_at"] == "2023-11-14T22:13:20+00:00"


@pytest.mark.contract("D10.5", "C4")
def test_the_command_carries_what_the_manual_says():
    assert MakeJwt().encode() == 'AT%JWT=0,0,"",""'
    assert MakeJwt("dev", "team", 60).encode() == 'AT%JWT=0,60,"dev","team"'
    assert MakeJwt("dev", "", 60, 17, 2).encode() == 'AT%JWT=0,60,"dev","",17,2'
    for bad in (
        MakeJwt('a"b'),
        MakeJwt("a\r"),
        MakeJwt(exp_delta_s=0),
        MakeJwt(sec_tag=2**31),
        MakeJwt(sec_tag=1, key_type=1),
    ):
        with pytest.raises(UnsafeArgument):
            bad.encode()


GOOD = make()


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("Aa0_.!"))
def test_a_changed_token_is_refused_or_does_not_verify(place, mark):
    bad = GOOD[:place] + mark + GOOD[place + 1 :]
    try:
        token = read_jwt(bad)
    except ParseError:
        return
    # The last character of a part carries bits that decoding drops.
    assert token.token == GOOD or not verify(token, KEY.public_key())


def test_a_token_is_read_between_blanks_and_its_uuid_in_any_case() -> None:
    upper = {"iss": "50363154-3931-44F0-8000-00000000000A", "exp": 10**20}
    token = read_jwt(f" {make(upper)}\r\n")
    assert (token.device_uuid, token.chip) == ("50363154-3931-44f0-8000-00000000000a", None)
    assert token.expires_at is None, "no calendar has that year"
