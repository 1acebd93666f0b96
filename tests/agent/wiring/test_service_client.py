from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from agent.call import Host, Scheme
from agent.cloud.device_reads import ListDevices
from agent.config import Configuration, load
from agent.config.profile import CredentialSettings
from agent.errors import ConfigError, NothingListens, Unreachable
from agent.location.agnss import AgnssRequest, MeasureAgnss
from agent.location.calls import LocateWifi
from agent.retry import NO_RETRY
from agent.wiring.service_client import _PREFERABLE, connect
from tests.support.cloud.every_call import CALLS

HEAD = '[profiles.lab.hosts]\ndevice_cloud = "https://cloud.invalid"\n'


@pytest.fixture
def configured(tmp_path: Path):
    def configuration(profile: str = "", **environ: str) -> Configuration:
        file = tmp_path / "config.toml"
        file.write_text(HEAD + profile)
        return load("lab", environ={"CELLAGENT_CONFIG": str(file), **environ})

    return configuration


async def modem(subject: str, life_s: int) -> str:
    raise AssertionError("no token is asked for before a call is sent")


def schemes(client) -> set[Scheme]:
    return {scheme for scheme in Scheme if scheme in client.keyring}


def test_each_secret_that_is_configured_becomes_its_credential(configured):
    client = connect(
        configured(
            '[profiles.lab.account]\nemail = "me@example.com"\n',
            CELLAGENT_API_KEY="api-key-of-a-test",
            CELLAGENT_ORG_TOKEN="oat_of-a-test",
            CELLAGENT_PROJECT_KEY="project-key-of-a-test",
            CELLAGENT_USER_API_KEY="user-key-of-a-test",
        )
    )
    assert schemes(client) == {
        Scheme.API_KEY, Scheme.ORGANIZATION_TOKEN, Scheme.PROJECT_KEY, Scheme.BASIC,
    }  # fmt: skip
    assert client.base_url(Host.DEVICE_CLOUD) == "https://cloud.invalid"
    with pytest.raises(ConfigError, match=r"hosts\.api is not set"):
        client.base_url(Host.API)


async def test_what_is_not_reached_is_told_with_the_key_that_names_it(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text('[profiles.lab.hosts]\ndevice_cloud = "http://127.0.0.1:1"\n')
    environ = {"CELLAGENT_CONFIG": str(file), "CELLAGENT_API_KEY": "api-key-of-a-test"}
    async with connect(load("lab", environ=environ)) as client:
        with pytest.raises(NothingListens) as refused:
            await client.send(ListDevices())
    assert refused.value.hint == (
        f"the address is hosts.device_cloud of profile lab in {file}: "
        "`cellagent cloud serve --listen 127.0.0.1:1 --write-profile lab` starts a stand-in there"
    )


async def test_what_is_not_resolved_is_told_with_the_command_that_mends_it(configured):
    configuration = configured(CELLAGENT_API_KEY="api-key-of-a-test")
    async with connect(configuration) as client:
        with pytest.raises(Unreachable, match=r"cloud\.invalid:443: the name cannot") as unknown:
            await client.send(ListDevices(), retries=NO_RETRY)
    assert "`cellagent config set hosts.device_cloud URL --profile lab`" in unknown.value.hint


def test_a_user_key_without_email_is_no_credential(configured):
    assert schemes(connect(configured(CELLAGENT_USER_API_KEY="user-key-of-a-test"))) == set()


def test_a_user_key_takes_precedence_over_a_password(configured):
    both = {"CELLAGENT_USER_API_KEY": "user-key", "CELLAGENT_USER_PASSWORD": "a-pass-word"}
    client = connect(configured('[profiles.lab.account]\nemail = "me@example.com"\n', **both))
    assert "user API key" in repr(client.keyring._by_scheme[Scheme.BASIC])


def test_the_modem_takes_precedence_over_a_key_file_of_this_host(configured):
    key = '[profiles.lab.credentials]\ndevice_key_file = "key.pem"\n[profiles.lab.kit]\n'
    configuration = configured(key + 'device_id = "kit-1"\n')
    by_file = connect(configuration).keyring._by_scheme[Scheme.DEVICE_JWT]
    by_modem = connect(configuration, ask_modem=modem).keyring._by_scheme[Scheme.DEVICE_JWT]
    assert (type(by_file).__name__, type(by_modem).__name__) == ("DeviceKey", "ModemJwt")


@pytest.mark.contract("D10.6", "D8.5")
@pytest.mark.parametrize(
    ("prefer", "others", "chosen"),
    [
        ("", {}, Scheme.EVALUATION_TOKEN),
        ("device-jwt", {}, Scheme.DEVICE_JWT),
        ("evaluation-token", {}, Scheme.EVALUATION_TOKEN),
        ("", {"CELLAGENT_SERVICE_TOKEN": "service-token-of-a-test"}, Scheme.SERVICE_TOKEN),
        (
            "evaluation-token",
            {"CELLAGENT_SERVICE_TOKEN": "service-token-of-a-test"},
            Scheme.EVALUATION_TOKEN,
        ),
    ],
)
def test_an_evaluation_token_is_tried_though_a_modem_is_attached(
    configured, prefer: str, others: dict[str, str], chosen: Scheme
):
    client = connect(
        configured(
            f'[profiles.lab.credentials]\nprefer = "{prefer}"\n',
            CELLAGENT_EVALUATION_TOKEN="evaluation-token-of-a-test",
            **others,
        ),
        ask_modem=modem,
    )
    for call in (LocateWifi(None), MeasureAgnss(None, AgnssRequest())):
        assert client.keyring.choose(call).scheme is chosen


def test_each_kind_that_competes_with_another_can_be_preferred():
    competing = {scheme for call in CALLS if len(call.schemes) > 1 for scheme in call.schemes}
    assert competing <= set(_PREFERABLE.values())
    words = get_args(get_type_hints(CredentialSettings)["prefer"])
    assert set(words) == {"", *_PREFERABLE}


def test_service_keys_need_the_team(configured):
    keys = '[profiles.lab.credentials.service_key_files]\nall = "key.pem"\n'
    with pytest.raises(ConfigError, match=r"account\.team_id"):
        connect(configured(keys))
    client = connect(configured(keys + '[profiles.lab.account]\nteam_id = "team-1"\n'))
    assert schemes(client) == {Scheme.SERVICE_JWT}
