"""Each kind of credential where it is taken and where it is not, over a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.auth.bearer import EvaluationToken, ServiceToken
from agent.auth.credential import Credential
from agent.auth.key_files import ServiceKeys
from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.config.project import ProjectSlugs
from agent.config.secrets import Secret
from agent.errors import CredentialError, Forbidden, NotFound, Unauthorized, WrongCredential
from agent.location.calls import LocateWifi
from agent.location.position import Position
from agent.standin.device_cloud import seed
from agent.standin.state import PROJECT_WITHOUT_LOCATION
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import organization_token, speaking_for_kit

# Two access points of the made-up radio world.
HEARD = tuple(
    {"macAddress": mac, "signalStrength": -61} for mac in ("40:01:7a:00:00:e3", "40:01:7a:00:01:67")
)
LEGACY = LocateWifi(None, access_points=HEARD)


def service_keys(standin: StandIn, service: str = "location", **changed: str) -> ServiceKeys:
    file = Path(standin.credentials["service_key_file"]).with_name(f"service-key-{service}.pem")
    team = changed.get("team", standin.team_id)
    return ServiceKeys({"location": str(file)}, team, now=standin.clock.time)


@pytest.mark.contract("D8.3", "D10.4", "D10.6", "D10.7", "O4.6")
@pytest.mark.parametrize("kind", ["service key", "service token", "evaluation token"])
async def test_the_legacy_location_path_takes_each_token_of_its_time(
    standin: StandIn, kind: str
) -> None:
    credential: Credential = {
        "service key": service_keys(standin),
        "service token": ServiceToken(Secret(standin.credentials["service_token"])),
        "evaluation token": EvaluationToken(Secret(standin.credentials["evaluation_token"])),
    }[kind]
    async with speaking_for_kit(standin, credential) as client:
        assert isinstance(await client.send(LEGACY), Position)
        with pytest.raises(CredentialError):
            await client.send(LocateWifi(ProjectSlugs("acme", "kits"), access_points=HEARD))
        standin.cloud.settings.legacy_location = False
        with pytest.raises(NotFound):
            await client.send(LEGACY)


@pytest.mark.contract("D10.4")
async def test_a_key_of_another_service_or_team_opens_nothing(standin: StandIn) -> None:
    for credential in (service_keys(standin, "fota"), service_keys(standin, team="another")):
        async with speaking_for_kit(standin, credential) as client:
            with pytest.raises(Unauthorized) as caught:
                await client.send(LEGACY)
            assert "belong to this service" in caught.value.hint


@pytest.mark.contract("D10.4", "D9.2")
async def test_a_service_key_serves_a_device_that_it_names(standin: StandIn) -> None:
    file = Path(standin.credentials["service_key_file"]).with_name("service-key-fota.pem")
    keys = ServiceKeys({"fota": str(file)}, standin.team_id, now=standin.clock.time)
    call = FetchCurrentJob(seed.GENERIC)
    if Scheme.SERVICE_JWT not in call.schemes:
        pytest.skip("the call takes no service-key JWT")
    async with speaking_for_kit(standin, keys) as client:
        assert await client.send(call, scheme=Scheme.SERVICE_JWT) is None


@pytest.mark.contract("D10.7", "O4.6", "D8.4")
async def test_the_organization_token_opens_every_project_of_its_organization(
    standin: StandIn,
) -> None:
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        here = LocateWifi(ProjectSlugs(standin.organization, standin.project), access_points=HEARD)
        assert isinstance(await client.send(here), Position)
        off = ProjectSlugs(standin.organization, PROJECT_WITHOUT_LOCATION)
        with pytest.raises(Forbidden):
            await client.send(LocateWifi(off, access_points=HEARD))
        with pytest.raises(Unauthorized):
            await client.send(LocateWifi(ProjectSlugs("umbrella", "kits"), access_points=HEARD))
        with pytest.raises(WrongCredential):
            await client.send(here, scheme=Scheme.SERVICE_TOKEN)


@pytest.mark.contract("D10.6")
async def test_the_end_of_the_trial_names_the_way_on(standin: StandIn) -> None:
    token = EvaluationToken(Secret(standin.credentials["evaluation_token"]))
    standin.clock.advance(31 * 86400)
    async with speaking_for_kit(standin, token) as client:
        with pytest.raises(CredentialError) as caught:
            await client.send(LEGACY)
    assert "trial" in caught.value.hint
