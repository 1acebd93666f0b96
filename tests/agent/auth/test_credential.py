from __future__ import annotations

import base64
from dataclasses import dataclass

import pytest

from agent.auth.bearer import ApiKey, OrganizationToken
from agent.auth.credential import HOSTS, Basic, Keyring, ProjectKey
from agent.call import Call, Host, Scheme
from agent.config.secrets import Secret
from agent.errors import ConfigError, CredentialMissing, WrongCredential
from agent.redact import redact
from tests.support.cloud.credential_calls import Modem, Push, modem_jwt


async def test_the_preferred_kind_is_used_where_it_is_taken() -> None:
    @dataclass(frozen=True, slots=True)
    class Either(Call[None]):
        schemes = (Scheme.DEVICE_JWT, Scheme.API_KEY)

    key, jwt_ = ApiKey(Secret("api-key-of-the-test")), modem_jwt(Modem())
    assert Keyring([key, jwt_]).choose(Either()) is jwt_
    assert Keyring([key, jwt_], prefer=Scheme.API_KEY).choose(Either()) is key
    assert Keyring([key, jwt_]).choose(Either(), Scheme.API_KEY) is key
    prefers_jwt = Keyring([key, jwt_], prefer=Scheme.DEVICE_JWT)
    assert prefers_jwt.choose(Either(), Scheme.API_KEY) is key
    assert Keyring([jwt_], prefer=Scheme.API_KEY).choose(Either()) is jwt_
    with pytest.raises(CredentialMissing):
        Keyring([jwt_]).choose(Either(), Scheme.API_KEY)
    with pytest.raises(CredentialMissing) as none:
        Keyring([]).choose(Either())
    assert "`--port PORT`" in none.value.hint  # of the kind that the call prefers


@pytest.mark.contract("D1.2", "D1.5")
@pytest.mark.parametrize(
    ("scheme", "named"),
    [
        (Scheme.API_KEY, "set api_key`, or set CELLAGENT_API_KEY"),
        (Scheme.EVALUATION_TOKEN, " CELLAGENT_EVALUATION_TOKEN"),
        (Scheme.SERVICE_TOKEN, " CELLAGENT_SERVICE_TOKEN"),
        (Scheme.ORGANIZATION_TOKEN, " CELLAGENT_ORG_TOKEN"),
        (Scheme.BASIC, " CELLAGENT_USER_API_KEY and account.email"),
        (Scheme.PROJECT_KEY, " CELLAGENT_PROJECT_KEY"),
        (Scheme.DEVICE_JWT, "`--port PORT`"),
        (Scheme.SERVICE_JWT, "credentials.service_key_files.all "),
    ],
)
def test_who_lacks_a_credential_is_told_where_it_is_put(scheme: Scheme, named: str) -> None:
    @dataclass(frozen=True, slots=True)
    class Needs(Call[None]):
        schemes = (scheme,)

    with pytest.raises(CredentialMissing) as caught:
        Keyring([]).choose(Needs())
    assert named in caught.value.hint


@pytest.mark.contract("O4.3", "D10.7", "D1.5")
def test_no_kind_goes_to_a_host_that_is_not_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class Wrong(Call[None]):
        host = Host.CHUNKS
        schemes = (Scheme.API_KEY, Scheme.ORGANIZATION_TOKEN, Scheme.BASIC)

    user = Basic("a@b.example", Secret("user-key-1"), is_password=False)
    keyring = Keyring(
        [ApiKey(Secret("api-key-of-the-test")), OrganizationToken(Secret("oat_xyz")), user]
    )
    with pytest.raises(CredentialMissing):
        keyring.choose(Wrong())
    assert Host.CHUNKS in HOSTS[Scheme.PROJECT_KEY]


@pytest.mark.contract("O4.1", "O4.5")
async def test_basic_sends_email_and_secret_and_warns() -> None:
    credential = Basic("a@b.example", Secret("pass word"), is_password=True)
    sent = (await credential.headers(Push()))["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"a@b.example:pass word"
    assert redact(f"sent {sent.removeprefix('Basic ')}") == "sent [secret]"
    assert "whole account" in credential.warning
    assert "pass word" not in repr(credential)
    key = Basic("a@b.example", Secret("user-key-1"), is_password=False, unattended=True)
    assert "stops working when its user leaves" in key.warning
    assert Basic("a@b.example", Secret("user-key-1"), is_password=False).warning == ""
    for cause in ("single", "removed"):
        assert cause in key.advice(401)
    with pytest.raises(ConfigError, match=r"account\.email"):
        Basic("a:b", Secret("user-key-1"), is_password=False)


@pytest.mark.contract("O4.3", "C7")
async def test_the_project_key_goes_under_the_configured_header_to_its_own_paths_only() -> None:
    credential = ProjectKey(Secret("project-key-of-the-test"), header="Memfault-Project-Key")
    assert await credential.headers(Push()) == {"memfault-project-key": "project-key-of-the-test"}
    for path in (
        "/api/v0/organizations/o/projects/p/events",
        "/auth/me",
        "/api/v0/events/../organizations",
        "/v1/devices",
        "/api/v0/chunks/a/b",
        "/api/v0/releases/1.0.0",
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
    assert "quota" not in credential.advice(401)
    assert "quota" in credential.advice(403), "as the service documents this status"
    with pytest.raises(ConfigError, match="no header name"):
        ProjectKey(Secret("project-key-of-the-test"), header="X: 1\r\nY")
