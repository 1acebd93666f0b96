"""How boards are registered at the stand-in, and what is missing is told before any is touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.auth.credential import Keyring
from agent.call import Host
from agent.errors import ConfigError, CredentialMissing
from agent.http import HttpClient, HttpTransport
from agent.provisioning.planning.goal import RegistrationMethod
from agent.provisioning.running.steps.registrar import ReadServiceTime, Registrar
from agent.standin.principal import DEVICE_KEYS
from at.tokens.key_formats import key_pem
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import api_key, client_with

PEM = key_pem(ec.generate_private_key(ec.SECP256R1()).public_key())


def client_of(standin: StandIn, *, with_key: bool = True) -> HttpClient:
    return client_with(standin, *([api_key(standin)] if with_key else []))


async def test_a_public_key_is_registered_once_its_request_has_succeeded(standin: StandIn) -> None:
    async with client_of(standin) as client:
        registrar = Registrar(client, RegistrationMethod.PUBLIC_KEY)
        request_id = await registrar.submit("nrf-350457791234567", PEM, "")
        assert request_id
        await registrar.wait(request_id)
    assert [name for name, _ in standin.cloud.table(DEVICE_KEYS).items()]


async def test_a_request_that_was_never_sent_is_not_waited_for(standin: StandIn) -> None:
    async with client_of(standin) as client:
        await Registrar(client, RegistrationMethod.CLAIM).wait("")


OF_A_TEAM = set(RegistrationMethod) - {
    RegistrationMethod.ATTESTATION,
    RegistrationMethod.TOKEN,
    RegistrationMethod.NONE,
}


@pytest.mark.parametrize("method", sorted(OF_A_TEAM, key=str))
async def test_a_missing_credential_is_told_before_any_board_is_touched(
    standin: StandIn, method: RegistrationMethod
) -> None:
    async with client_of(standin) as client:
        Registrar(client, method).require(set_clock=True, prove=True)
    async with client_of(standin, with_key=False) as client:
        with pytest.raises(CredentialMissing):
            Registrar(client, method).require(set_clock=False, prove=False)
        Registrar(client, RegistrationMethod.NONE).require(set_clock=False, prove=False)


async def test_a_host_that_is_not_configured_is_told_where_a_token_is_to_be_proved() -> None:
    async with HttpClient(HttpTransport(), {}, Keyring([])) as client:
        registrar = Registrar(client, RegistrationMethod.NONE)
        registrar.require(set_clock=False, prove=False)
        with pytest.raises(ConfigError, match="device_cloud"):
            registrar.require(set_clock=False, prove=True)


async def test_the_hosts_clock_is_compared_with_the_services(standin: StandIn) -> None:
    async with client_of(standin) as client:
        registrar = Registrar(client, RegistrationMethod.PUBLIC_KEY)
        theirs = await client.send(ReadServiceTime())
        assert theirs is not None
        ahead_s = await registrar.host_clock_ahead_s(lambda: theirs + timedelta(hours=1))
        assert ahead_s == pytest.approx(3600, abs=60)


@pytest.mark.parametrize("status", [401, 403])
async def test_the_services_time_is_that_of_a_refusal(status: int) -> None:
    def refuse(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"date": "Sat, 28 Nov 2026 20:00:00 GMT"})

    hosts = {Host.DEVICE_CLOUD: "https://cloud.example"}
    async with HttpClient(answering_transport(refuse), hosts, Keyring([])) as client:
        theirs = await client.send(ReadServiceTime())
    assert theirs == datetime(2026, 11, 28, 20, tzinfo=UTC)
