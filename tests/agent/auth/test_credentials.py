from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.auth.basic import Basic
from agent.auth.bearer import ApiKey, EvaluationToken, OrganizationToken, ServiceToken
from agent.auth.credential import HOSTS, Keyring
from agent.auth.jwt import LIFE_S, RENEW_AFTER_S, signing_key
from agent.auth.key_files import DeviceKey, ServiceKeys
from agent.auth.modem_jwt import ModemJwt
from agent.auth.project_key import ProjectKey
from agent.call import Call, Host, Request, Scheme
from agent.config.secrets import Secret
from agent.errors import ConfigError, CredentialError, CredentialMissing, WrongCredential

UUID = "50363154-3930-4d96-80f9-13121cf35adc"
NOW = 1_767_323_045.0


@dataclass(frozen=True, slots=True)
class Push(Call[None]):
    path: str = "/api/v0/events"
    host = Host.INGRESS
    schemes = (Scheme.PROJECT_KEY,)

    def request(self) -> Request:
        return Request("POST", self.path)


@dataclass(frozen=True, slots=True)
class Locate(Call[None]):
    device: str = ""
    schemes = (Scheme.SERVICE_JWT,)
    service = "location"

    def serves(self) -> str:
        return self.device


class Clock:
    def __init__(self) -> None:
        self.value = 1000.0

    def __call__(self) -> float:
        return self.value


class Modem:
    """Answers AT%JWT as the modem does: `sub` only where one was given, the UUID in `iss`."""

    def __init__(self, **changed: Any) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.asked: list[str] = []
        self.changed = changed

    async def __call__(self, subject: str, life_s: int) -> str:
        self.asked.append(subject)
        claims: dict[str, Any] = {"iss": f"nRF9161.{UUID}", "jti": f"x{len(self.asked)}"}
        claims |= {"iat": int(NOW), "exp": int(NOW) + life_s}
        if subject:
            claims["sub"] = subject
        claims = {k: v for k, v in (claims | self.changed).items() if v is not None}
        return jwt.encode(claims, self.key, "ES256")


def claims_of(headers: Any) -> dict[str, Any]:
    token = headers["authorization"].removeprefix("Bearer ")
    return jwt.decode(token, options={"verify_signature": False})


def pem(path: Path, key: Any) -> Path:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    return path


@pytest.fixture
def p256(tmp_path: Path) -> Path:
    return pem(tmp_path / "key.pem", ec.generate_private_key(ec.SECP256R1()))


def modem_jwt(modem: Modem, device_id: str = "", **clocks: Any) -> ModemJwt:
    return ModemJwt(modem, device_id, now=lambda: NOW, **clocks)


@pytest.mark.contract("D10.3", "C4")
@pytest.mark.parametrize("device_id", ["", UUID, UUID.upper(), UUID.replace("-", "")])
async def test_the_subject_is_left_out_where_the_id_is_the_modems_uuid(device_id: str) -> None:
    modem = Modem()
    credential = modem_jwt(modem, device_id)
    claims = claims_of(await credential.headers(Push()))
    assert modem.asked == [""]
    assert "sub" not in claims
    assert "aud" not in claims
    assert await credential.device_id() == (device_id or UUID)


@pytest.mark.contract("D10.3", "D10.5")
@pytest.mark.parametrize(
    ("device_id", "asked"),
    [
        ("nrf-358299840010349", ["nrf-358299840010349"]),
        ("00000000-0000-4000-8000-000000000001", ["", "00000000-0000-4000-8000-000000000001"]),
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
    advice = modem_jwt(Modem()).advice(401)
    assert "kit.device_id" in advice
    assert "certificate that uses the UUID" in advice


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


async def test_calls_at_the_same_time_ask_the_modem_once() -> None:
    import asyncio

    modem = Modem()
    credential = modem_jwt(modem, "x")
    await asyncio.gather(*(credential.headers(Push()) for _ in range(20)))
    assert len(modem.asked) == 1


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


@pytest.mark.contract("D10.3")
async def test_a_host_made_device_token_always_names_the_device(p256: Path) -> None:
    credential = DeviceKey(p256, UUID, now=lambda: NOW)
    headers = await credential.headers(Push())
    token = headers["authorization"].removeprefix("Bearer ")
    public = signing_key(p256).public_key()
    claims = jwt.decode(
        token, public, ["ES256"], options={"verify_exp": False, "verify_iat": False}
    )
    assert claims == {"sub": UUID, "iat": int(NOW), "exp": int(NOW) + 600}
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "typ": "JWT"}
    with pytest.raises(ConfigError, match=r"kit\.device_id"):
        DeviceKey(p256, "")


@pytest.mark.contract("D10.4")
async def test_each_service_has_its_own_key_and_the_team_as_audience(tmp_path: Path) -> None:
    files = {
        name: str(pem(tmp_path / name, ec.generate_private_key(ec.SECP256R1())))
        for name in ("location", "fota")
    }
    credential = ServiceKeys(files, "team-1", now=lambda: NOW)
    headers = await credential.headers(Locate("nrf-1"))
    token = headers["authorization"].removeprefix("Bearer ")
    public = signing_key(Path(files["location"])).public_key()
    claims = jwt.decode(
        token,
        public,
        ["ES256"],
        audience="team-1",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert claims["sub"] == "nrf-1"
    assert "sub" not in claims_of(await credential.headers(Locate()))
    with pytest.raises(
        CredentialMissing, match="no service key for location; there are keys for: fota"
    ):
        await ServiceKeys({"fota": files["fota"]}, "team-1").headers(Locate())
    with pytest.raises(ConfigError, match="team_id"):
        ServiceKeys(files, "")


@pytest.mark.contract("D10.9")
def test_a_refused_service_key_names_plan_and_role() -> None:
    advice = ServiceKeys({}, "team-1").advice(403)
    assert "Pro or Enterprise" in advice
    assert "team owner" in advice


async def test_tokens_for_many_devices_are_kept_within_a_bound(p256: Path) -> None:
    credential = ServiceKeys({"all": str(p256)}, "team-1")
    for number in range(300):
        await credential.headers(Locate(f"nrf-{number}"))
    assert len(credential._tokens) == 256


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


@pytest.mark.contract("O4.3")
async def test_the_project_key_goes_under_the_configured_header_to_its_own_paths_only() -> None:
    credential = ProjectKey(Secret("project-key-of-the-test"), header="Memfault-Project-Key")
    assert await credential.headers(Push()) == {"memfault-project-key": "project-key-of-the-test"}
    for path in (
        "/api/v0/organizations/o/projects/p/events",
        "/auth/me",
        "/api/v0/events/../organizations",
        "/v1/devices",
        "/api/v0/chunks/a/b",
    ):
        with pytest.raises(WrongCredential, match="none of the paths"):
            await credential.headers(Push(path))
    for path in (
        "/api/v0/chunks/TESTSERIAL",
        "/api/v0/upload",
        "/api/v0/upload/coredump",
        "/api/v0/upload/custom-data-recording",
        "/api/v0/releases/latest",
    ):
        await credential.headers(Push(path))
    with pytest.raises(ConfigError, match="no header name"):
        ProjectKey(Secret("project-key-of-the-test"), header="X: 1\r\nY")


@pytest.mark.contract("O4.1", "O4.5")
async def test_basic_sends_email_and_secret_and_warns() -> None:
    credential = Basic("a@b.example", Secret("pass word"), is_password=True)
    sent = (await credential.headers(Push()))["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"a@b.example:pass word"
    assert "whole account" in credential.warning
    assert "pass word" not in repr(credential)
    key = Basic("a@b.example", Secret("user-key-1"), is_password=False, unattended=True)
    assert "stops working when its user leaves" in key.warning
    assert Basic("a@b.example", Secret("user-key-1"), is_password=False).warning == ""
    for cause in ("single", "removed"):
        assert cause in key.advice(401)
    with pytest.raises(ConfigError, match=r"account\.email"):
        Basic("a:b", Secret("user-key-1"), is_password=False)


@pytest.mark.contract("D10.1", "D10.6", "D10.7", "D10.10", "O4.2")
def test_each_issued_token_says_what_a_refusal_may_mean() -> None:
    secret = Secret("token-of-the-test")
    assert "account page" in ApiKey(secret).advice(401)
    assert "role" in ApiKey(secret).advice(403)
    assert "shown once" in OrganizationToken(secret).advice(401)
    assert "deprecated" in EvaluationToken(secret).warning
    assert "service key" in EvaluationToken(secret).advice(401)
    assert "organization auth token" in ServiceToken(secret).warning
    for kind in (ApiKey, OrganizationToken, EvaluationToken, ServiceToken):
        assert "token-of-the-test" not in repr(kind(secret))


async def test_the_preferred_kind_is_used_where_it_is_taken() -> None:
    @dataclass(frozen=True, slots=True)
    class Either(Call[None]):
        schemes = (Scheme.DEVICE_JWT, Scheme.API_KEY)

    key, jwt_ = ApiKey(Secret("api-key-of-the-test")), modem_jwt(Modem())
    assert Keyring([key, jwt_]).choose(Either()) is jwt_
    assert Keyring([key, jwt_], prefer=Scheme.API_KEY).choose(Either()) is key
    assert Keyring([key, jwt_]).choose(Either(), Scheme.API_KEY) is key
    assert Keyring([jwt_], prefer=Scheme.API_KEY).choose(Either()) is jwt_
    with pytest.raises(CredentialMissing):
        Keyring([jwt_]).choose(Either(), Scheme.API_KEY)


@pytest.mark.contract("O4.3", "D10.7")
def test_no_kind_goes_to_a_host_that_is_not_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class Wrong(Call[None]):
        host = Host.CHUNKS
        schemes = (Scheme.API_KEY, Scheme.ORGANIZATION_TOKEN, Scheme.BASIC)

    keyring = Keyring([ApiKey(Secret("api-key-of-the-test")), OrganizationToken(Secret("oat_xyz"))])
    with pytest.raises(CredentialMissing):
        keyring.choose(Wrong())
    assert Host.CHUNKS in HOSTS[Scheme.PROJECT_KEY]
