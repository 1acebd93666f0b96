from __future__ import annotations

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from agent.auth.modem_jwt import ModemJwt
from agent.errors import CredentialError
from at.commands.jwt import MakeJwt
from at.protocol.errors import ParseError
from at.tokens.jwt import Jwt
from tests.support.cloud.credential_calls import NOW, UUID, Modem, Push, claims_of, modem_jwt


@pytest.mark.contract("D10.3", "C4")
@pytest.mark.parametrize("device_id", ["", UUID, UUID.upper()])
async def test_the_subject_is_left_out_where_the_id_is_the_modems_uuid(device_id: str) -> None:
    modem = Modem()
    credential = modem_jwt(modem, device_id)
    claims = claims_of(await credential.headers(Push()))
    assert modem.asked == [""]
    assert "sub" not in claims
    assert "aud" not in claims


@pytest.mark.contract("D10.3", "D10.5")
@pytest.mark.parametrize(
    ("device_id", "asked"),
    [
        ("nrf-358299840010349", ["nrf-358299840010349"]),
        ("00000000-0000-4000-8000-000000000001", ["", "00000000-0000-4000-8000-000000000001"]),
        # The service compares texts: what `iss` holds is not this id.
        (UUID.replace("-", ""), [UUID.replace("-", "")]),
    ],
)
async def test_another_id_is_supplied_as_subject(device_id: str, asked: list[str]) -> None:
    modem = Modem()
    claims = claims_of(await modem_jwt(modem, device_id).headers(Push()))
    assert modem.asked == asked
    assert claims["sub"] == device_id
    assert "401" not in modem_jwt(modem, device_id).advice(401)


@pytest.mark.contract("D10.5")
def test_a_refused_token_without_subject_names_both_ways_out() -> None:
    refused = modem_jwt(Modem())
    assert refused.forget()  # so that it is tried once more, with another
    advice = refused.advice(401)
    assert "kit.device_id" in advice
    assert "certificate that uses the UUID" in advice


@pytest.mark.parametrize(("ahead_s", "is_told"), [(7200, True), (60, False), (-120, False)])
async def test_a_refused_token_of_a_modem_that_is_ahead_is_told_by_its_clock(
    ahead_s: int, is_told: bool
) -> None:
    begin = int(NOW) + ahead_s
    refused = modem_jwt(Modem(iat=begin, exp=begin + 600), "mine")
    await refused.headers(Push())  # it may be this machine that is behind
    advice = refused.advice(401)
    assert ("begins 7200 s from now" in advice) is is_told
    assert ("AT+CCLK?" in advice) is is_told


@pytest.mark.contract("D10.3")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"aud": "team"}, "aud"),
        ({"aud": ""}, "aud"),
        ({"sub": "another"}, "is for 'another'"),
        ({"sub": None}, "is for 'nobody'"),
        ({"exp": None}, "no end"),
        ({"exp": int(NOW) - 90}, "expired 90 s ago"),
        ({"exp": int(NOW)}, "expired 0 s ago"),
    ],
)
async def test_a_token_that_the_service_would_refuse_is_not_sent(
    changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(CredentialError, match=named):
        await modem_jwt(Modem(**changed), "mine").headers(Push())


@pytest.mark.parametrize(
    ("changed", "named"), [({"exp": "soon"}, "exp is no time"), ({"jti": 5}, "jti is no text")]
)
async def test_a_token_that_cannot_be_read_is_not_sent(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ParseError, match=named):
        await modem_jwt(Modem(**changed), "mine").headers(Push())


@pytest.mark.contract("D10.2")
async def test_a_token_signed_otherwise_is_refused_with_the_way_out() -> None:
    """An RSA key, made elsewhere, was loaded onto the kit."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    async def ask(subject: str, life_s: int) -> Jwt:
        made = jwt.encode({"sub": subject, "exp": int(NOW) + life_s}, key, "RS256")
        return MakeJwt(subject=subject).parse([f'%JWT: "{made}"'])

    with pytest.raises(CredentialError, match="not signed with ES256") as caught:
        await ModemJwt(ask, "mine", now=lambda: NOW).headers(Push())
    assert "delete the device, then provision it again" in caught.value.hint


async def test_a_token_that_names_no_device_is_not_sent() -> None:
    with pytest.raises(CredentialError, match="names no device") as caught:
        await modem_jwt(Modem(iss="nRF9161")).headers(Push())
    assert "kit.device_id" in caught.value.hint
