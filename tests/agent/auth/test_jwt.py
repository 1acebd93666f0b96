from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from credential_calls import NOW, Modem, Push, modem_jwt, pem
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.auth.jwt import LIFE_S, RENEW_AFTER_S, signing_key
from agent.auth.modem_jwt import ModemJwt
from agent.errors import ConfigError, CredentialError


class Clock:
    def __init__(self) -> None:
        self.value = 1000.0

    def __call__(self) -> float:
        return self.value


async def test_a_token_is_renewed_at_four_fifths_of_its_life_and_after_a_refusal() -> None:
    modem, clock = Modem(), Clock()
    credential = modem_jwt(modem, "x", monotonic=clock)
    first = await credential.headers(Push())
    clock.value += RENEW_AFTER_S - 0.1
    assert await credential.headers(Push()) == first
    assert RENEW_AFTER_S == 0.8 * LIFE_S
    clock.value += 0.2
    assert await credential.headers(Push()) != first
    assert credential.forget() is True
    await credential.headers(Push())
    assert len(modem.asked) == 3


@pytest.mark.contract("D10.3")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"aud": "team"}, "aud"),
        ({"sub": "another"}, "is for 'another'"),
        ({"sub": None}, "is for 'nobody'"),
        ({"exp": None}, "no end"),
        ({"exp": int(NOW) - 90}, "expired 90 s ago"),
        ({"exp": "soon"}, "`exp` is no whole number"),
        ({"iss": ["a"]}, "`iss` is no text"),
    ],
)
async def test_a_token_that_the_service_would_refuse_is_not_sent(
    changed: dict[str, Any], named: str
) -> None:
    modem = Modem()
    if "iss" in changed:
        body = base64.urlsafe_b64encode(json.dumps({**changed, "exp": 1}).encode()).decode()

        async def ask(subject: str, life_s: int) -> str:
            return f"eyJhbGciOiJFUzI1NiJ9.{body.rstrip('=')}.{'A' * 86}"
    else:
        ask = Modem(**changed)  # type: ignore[assignment]
    with pytest.raises(CredentialError, match=named):
        await ModemJwt(ask, "mine", now=lambda: NOW).headers(Push())
    assert modem.asked == []


@pytest.mark.contract("D10.2")
async def test_a_token_signed_otherwise_is_refused_with_the_way_out() -> None:
    key = rsa.generate_private_key(65537, 2048)

    async def ask(subject: str, life_s: int) -> str:
        return jwt.encode({"sub": subject, "exp": int(NOW) + life_s}, key, "RS256")

    with pytest.raises(CredentialError, match="RS256, not ES256") as caught:
        await ModemJwt(ask, "mine", now=lambda: NOW).headers(Push())
    assert "delete the device, then provision it again" in caught.value.hint


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "....", "e30.e30.", "é.é.é", "W10.W10.AA"])
async def test_what_is_no_token_is_refused(token: str) -> None:
    async def ask(subject: str, life_s: int) -> str:
        return token

    with pytest.raises(CredentialError):
        await ModemJwt(ask, "mine", now=lambda: NOW).headers(Push())


@pytest.mark.contract("D10.2")
def test_keys_of_other_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="RSA key") as caught:
        signing_key(pem(tmp_path / "rsa", rsa.generate_private_key(65537, 2048)))
    assert "provision it again" in caught.value.hint
    with pytest.raises(CredentialError, match="no P-256 key"):
        signing_key(pem(tmp_path / "p384", ec.generate_private_key(ec.SECP384R1())))
    junk = tmp_path / "junk"
    junk.write_text("no key")
    junk.chmod(0o600)
    with pytest.raises(CredentialError, match="no private key in PEM form"):
        signing_key(junk)
    junk.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        signing_key(junk)


def test_a_key_is_loaded_once(p256: Path) -> None:
    assert signing_key(p256) is signing_key(p256)
