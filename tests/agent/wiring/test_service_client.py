from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from agent.call import Host, Scheme
from agent.cloud.device_reads import ListDevices
from agent.config import Configuration, load
from agent.config.profile import CredentialSettings
from agent.config.project import ProjectSlugs
from agent.errors import ConfigError, NotFound, NothingListens, Unreachable
from agent.location.agnss import AgnssRequest, MeasureAgnss
from agent.location.calls import LocateWifi
from agent.retry import NO_RETRY
from agent.wiring.service_client import _PREFERABLE, connect
from at.protocol.errors import FirmwareRefused
from tests.support.cloud.every_call import CALLS

CLOUD = "https://cloud.invalid"


@pytest.fixture
def configured(tmp_path: Path):
    def configuration(
        profile: str = "", cloud: str = CLOUD, name: str = "lab", **environ: str
    ) -> Configuration:
        file = tmp_path / "config.toml"
        file.write_text(f'[profiles."{name}".hosts]\ndevice_cloud = "{cloud}"\n{profile}')
        return load(name, environ={"CELLAGENT_CONFIG": str(file), **environ})

    return configuration


async def modem(subject: str, life_s: int) -> str:
    raise AssertionError("no token is asked for before a call is sent")


def schemes(client) -> set[Scheme]:
    return {scheme for scheme in Scheme if scheme in client.keyring}


def test_each_secret_that_is_configured_becomes_its_credential(configured):
    client = connect(
        configured(
            '[profiles.lab.account]\nemail = "me@example.com"\nproject_key_header = "X-Own-Key"\n',
            CELLAGENT_API_KEY="api-key-of-a-test",
            CELLAGENT_ORG_TOKEN="oat_of-a-test",
            CELLAGENT_PROJECT_KEY="project-key-of-a-test",
            CELLAGENT_MODEM_PROJECT_KEY="modem-project-key-of-a-test",
            CELLAGENT_USER_API_KEY="user-key-of-a-test",
        )
    )
    sources = {
        Scheme.API_KEY: "CELLAGENT_API_KEY",
        Scheme.ORGANIZATION_TOKEN: "CELLAGENT_ORG_TOKEN",
        Scheme.PROJECT_KEY: "CELLAGENT_PROJECT_KEY",
        Scheme.MODEM_PROJECT_KEY: "CELLAGENT_MODEM_PROJECT_KEY",
        Scheme.BASIC: "CELLAGENT_USER_API_KEY",
    }
    assert schemes(client) == set(sources)
    for scheme, variable in sources.items():
        advice = client.keyring.advice(client.keyring._by_scheme[scheme], 401, "")
        assert f"set {variable} to a valid one" in advice
        assert ("header, X-Own-Key," in advice) is scheme.value.endswith("project key")
    assert client.base_url(Host.DEVICE_CLOUD) == CLOUD
    with pytest.raises(ConfigError, match=r"hosts\.api is not set"):
        client.base_url(Host.API)


@pytest.mark.parametrize(
    ("name", "scheme", "mends"),
    [
        ("lab", "http", "`cellagent cloud serve --listen 127.0.0.1:1 --write-profile lab` starts"),
        ("the lab", "http", "`cellagent cloud serve --listen 127.0.0.1:1 --write-profile 'the lab"),
        ("lab", "https", "`cellagent config unset hosts.device_cloud --profile lab` takes it out"),
        ("the lab", "https", "`cellagent config unset hosts.device_cloud --profile 'the lab'` t"),
    ],
)
async def test_what_is_not_reached_is_told_with_the_key_that_names_it(
    configured, name: str, scheme: str, mends: str
):
    address = f"{scheme}://127.0.0.1:1"
    configuration = configured("", address, name, CELLAGENT_API_KEY="api-key-of-a-test")
    async with connect(configuration) as client:
        with pytest.raises(NothingListens) as refused:
            await client.send(ListDevices(), retries=NO_RETRY)
    whose = f"the address is hosts.device_cloud of profile {name} in {configuration.file}: "
    assert refused.value.hint.partition(whose)[2].startswith(mends)
    async with connect(configuration, unattended=True) as client:
        with pytest.raises(NothingListens) as refused:
            await client.send(ListDevices(), retries=NO_RETRY)
    # An agent has read the keys; a command that is typed again reads them again.
    assert ("`cellagent reload` takes its keys" in refused.value.hint) is (scheme == "http")


async def test_what_is_not_resolved_is_told_with_the_command_that_mends_it(configured):
    configuration = configured(CELLAGENT_API_KEY="api-key-of-a-test")
    async with connect(configuration) as client:
        with pytest.raises(Unreachable, match=r"cloud\.invalid:443: the name cannot") as unknown:
            await client.send(ListDevices(), retries=NO_RETRY)
    assert unknown.value.hint.endswith(
        f"the address is hosts.device_cloud of profile lab in {configuration.file}: "
        "`cellagent config unset hosts.device_cloud --profile lab` takes it out, or "
        "`cellagent config set hosts.device_cloud URL --profile lab`"
    )


async def test_an_agent_that_cannot_resolve_a_name_is_not_told_to_take_its_address_out(configured):
    configuration = configured(CELLAGENT_API_KEY="api-key-of-a-test")
    async with connect(configuration, unattended=True) as client:
        with pytest.raises(Unreachable) as unknown:
            await client.send(ListDevices(), retries=NO_RETRY)
    assert unknown.value.hint == (
        "check its spelling, and this machine's network; the address is hosts.device_cloud of "
        f"profile lab in {configuration.file}"
    )


async def test_a_client_goes_by_the_proxy_and_trusts_the_authority_of_its_profile(
    configured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("HOME", str(tmp_path))
    key = {"CELLAGENT_API_KEY": "api-key-of-a-test"}
    async with connect(configured('proxy = "http://127.0.0.1:1"\n', **key)) as client:
        with pytest.raises(NothingListens, match=r"^the proxy 127\.0\.0\.1:1: nothing"):
            await client.send(ListDevices(), retries=NO_RETRY)
    with pytest.raises(ConfigError, match=rf"hosts\.ca_file: .*{tmp_path}/missing\.pem"):
        connect(configured('ca_file = "~/missing.pem"\n', **key)).require(ListDevices())


async def test_a_client_asks_the_gate_and_takes_the_paths_that_it_was_given(configured):
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readline()).decode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def closed() -> None:
        raise FirmwareRefused("by this gate")

    @contextlib.asynccontextmanager
    async def waiting(place: str) -> AsyncIterator[None]:
        waited_for.append(place)
        yield

    waited_for: list[str] = []
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        configuration = configured(
            '[profiles.lab.account]\norganization = "acme"\nproject = "kits"\n'
            '[profiles.lab.account.project_paths]\n"/v1/devices" = "{project}/v1/kits"\n',
            f"http://{place}",
            CELLAGENT_ORG_TOKEN="oat_of-a-test",
        )
        given = {"ask_modem": modem, "kit_gate": closed, "while_waiting": waiting}
        async with connect(configuration, **given) as client:
            with pytest.raises(FirmwareRefused, match="by this gate"):
                await client.send(MeasureAgnss(None, AgnssRequest()))
            assert heads == []
            with pytest.raises(NotFound):
                await client.send(ListDevices())
    prefix = ProjectSlugs("acme", "kits").prefix
    assert heads[0].split()[1].partition("?")[0] == f"{prefix}/v1/kits"
    assert waited_for == [place]


def test_a_user_key_without_email_is_no_credential(configured):
    assert schemes(connect(configured(CELLAGENT_USER_API_KEY="user-key-of-a-test"))) == set()


def test_a_user_key_takes_precedence_over_a_password(configured):
    both = {"CELLAGENT_USER_API_KEY": "user-key", "CELLAGENT_USER_PASSWORD": "a-pass-word"}
    account = '[profiles.lab.account]\nemail = "me@example.com"\n'
    chosen = connect(configured(account, **both)).keyring._by_scheme[Scheme.BASIC]
    assert (repr(chosen), chosen.warning) == ("Basic(user API key)", "")
    alone = connect(configured(account, **both), unattended=True).keyring._by_scheme[Scheme.BASIC]
    assert "CELLAGENT_ORG_TOKEN" in alone.warning
    del both["CELLAGENT_USER_API_KEY"]
    left = connect(configured(account, **both)).keyring._by_scheme[Scheme.BASIC]
    assert repr(left) == "Basic(password)"


def test_the_modem_takes_precedence_over_a_key_file_of_this_host(configured):
    key = '[profiles.lab.kit]\ndevice_key_file = "key.pem"\n'
    configuration = configured(key + 'device_id = "kit-1"\n')
    by_file = connect(configuration).keyring._by_scheme[Scheme.DEVICE_JWT]
    by_modem = connect(configuration, ask_modem=modem).keyring._by_scheme[Scheme.DEVICE_JWT]
    assert (type(by_file).__name__, type(by_modem).__name__) == ("DeviceKey", "ModemJwt")


def test_a_key_file_is_of_none_of_several_kits_until_one_is_chosen(configured):
    key = '[profiles.lab.kit]\ndevice_key_file = "key.pem"\n'
    kits = '[profiles.lab.kits.a]\nport = "COM1"\n[profiles.lab.kits.b]\nport = "COM2"\n'
    assert Scheme.DEVICE_JWT not in connect(configured(key + kits)).keyring
    with pytest.raises(ConfigError, match=r"kit\.device_id is not set"):
        connect(configured(key))


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
