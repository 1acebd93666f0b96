"""Location calls over a real socket: which credential opens what, and what a refusal says."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.auth.bearer import EvaluationToken, OrganizationToken, ServiceToken
from agent.auth.credential import Keyring
from agent.auth.key_files import ServiceKeys
from agent.call import Host, Scheme
from agent.config.project import ProjectSlugs
from agent.config.secrets import Secret
from agent.errors import (
    BadAnswer,
    CredentialMissing,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unauthorized,
    WrongCredential,
)
from agent.http import HttpClient, HttpTransport
from agent.http.client import _warn_once
from agent.location.agnss import AgnssRequest, MeasureAgnss
from agent.location.calls import GroundFix, LocateCell, LocateWifi
from agent.location.pgps import PredictionRequest, RequestPgps
from agent.standin.faults import set_faults
from at.virtual.radio_world import Coordinates, load_world
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.kit_gates import open_gate
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import organization_token, speaking_for_kit
from tests.support.location.moving_kit import path

LAT, LON = path()[3]
WORLD = load_world()
POINTS = [
    {"macAddress": heard.access_point.bssid, "signalStrength": heard.rssi_dbm}
    for heard in WORLD.access_points(Coordinates(LAT, LON))
]
CELLS = [
    {"mcc": 1, "mnc": 1, "eci": heard.cell.eci, "tac": heard.cell.tac, "rsrp": heard.rsrp_dbm}
    for heard in WORLD.cells(Coordinates(LAT, LON))[:4]
]


def calls(project: ProjectSlugs | None, **switches: Any) -> list[Any]:
    """Return one call of each of the five endpoints."""
    return [
        LocateWifi(project, access_points=POINTS, **switches),
        LocateCell(project, cells=CELLS, **switches),
        GroundFix(project, cells=CELLS, access_points=POINTS, **switches),
        MeasureAgnss(project, AgnssRequest()),
        RequestPgps(project, PredictionRequest()),
    ]


@pytest.fixture
def here(standin: StandIn) -> ProjectSlugs:
    return ProjectSlugs(standin.organization, standin.project)


@pytest.mark.contract("D8.1", "D8.2", "D8.5", "D10.7", "O4.6")
async def test_one_organization_token_opens_all_five_in_any_project_of_it(
    standin: StandIn, here: ProjectSlugs
) -> None:
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        for call in calls(here):
            answer = await client.send(call)
            if isinstance(call, LocateWifi | LocateCell | GroundFix):
                assert answer.distance_m(LAT, LON) <= answer.uncertainty_m


@pytest.mark.contract("D8.3", "D8.5")
async def test_a_service_token_opens_the_legacy_form_and_is_warned_about(
    standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    _warn_once.cache_clear()
    token = ServiceToken(Secret(standin.credentials["service_token"]))
    with caplog.at_level(logging.WARNING):
        async with speaking_for_kit(standin, token) as client:
            for call in calls(None):
                await client.send(call)
    of_the_path, of_the_token = [record.message for record in caplog.records]
    assert "/v1/organizations/<organization>/projects/<project>/location/" in of_the_path
    assert "`cellagent config set location.legacy false`" in of_the_path
    assert "service tokens are deprecated" in of_the_token
    assert "account.organization" in of_the_token


@pytest.mark.contract("D8.3", "D8.4")
async def test_after_the_migration_a_404_names_the_new_form(standin: StandIn) -> None:
    standin.cloud.settings.legacy_location = False
    token = ServiceToken(Secret(standin.credentials["service_token"]))
    async with speaking_for_kit(standin, token) as client:
        for call in calls(None):
            with pytest.raises(NotFound) as told:
                await client.send(call)
            assert "legacy path is gone" in told.value.hint
            assert "/v1/organizations/<organization>/projects/<project>" in told.value.hint


@pytest.mark.contract("D8.4", "D10.7")
@pytest.mark.parametrize("cause", ["truncated", "organization", "project", "other organization"])
async def test_a_401_names_token_and_slugs(
    standin: StandIn, here: ProjectSlugs, cause: str
) -> None:
    project = {
        "truncated": here,
        "organization": ProjectSlugs("acmee", here.project),
        "project": ProjectSlugs(here.organization, "kitz"),
        "other organization": ProjectSlugs("umbrella", "kits"),
    }[cause]
    whole = standin.credentials["organization_auth_token"]
    token = OrganizationToken(Secret(whole[:-3] if cause == "truncated" else whole))
    async with speaking_for_kit(standin, token) as client:
        for call in calls(project):
            with pytest.raises(Unauthorized) as told:
                await client.send(call)
            assert f'"{project.organization}" and "{project.project}"' in told.value.hint
            assert "whole" in told.value.hint


@pytest.mark.contract("D8.4", "D10.7", "O4.2")
async def test_a_deleted_token_is_refused_and_the_way_to_another_is_named(
    standin: StandIn, here: ProjectSlugs
) -> None:
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        await client.send(calls(here)[0])
        token = (await standin.control({}))["organization_tokens"][0]
        await standin.control({"delete_organization_token": token["id"]})
        for call in calls(here):
            with pytest.raises(Unauthorized) as told:
                await client.send(call)
            assert "not deleted (an organization admin makes another" in told.value.hint


@pytest.mark.contract("D8.4")
async def test_a_403_says_where_location_is_switched_on(standin: StandIn) -> None:
    project = ProjectSlugs(standin.organization, "no-location")
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        for call in calls(project):
            with pytest.raises(Forbidden) as told:
                await client.send(call)
            assert "switch location services on for this project" in told.value.hint


@pytest.mark.contract("D8.4")
async def test_a_404_is_a_wrong_path_or_no_position_and_says_so(
    standin: StandIn, here: ProjectSlugs
) -> None:
    unknown = [{"macAddress": f"40:01:7a:ff:ff:{n:02x}", "signalStrength": -50} for n in range(3)]
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        with pytest.raises(NotFound) as told:
            await client.send(LocateWifi(here, access_points=unknown))
        assert "no position is known for what was heard" in told.value.hint
    urls = {Host.DEVICE_CLOUD: standin.urls["device_cloud"] + "/nowhere"}
    async with HttpClient(
        HttpTransport(), urls, Keyring([organization_token(standin)]), kit_gate=open_gate
    ) as client:
        with pytest.raises(NotFound) as told:
            await client.send(calls(here)[4])
        assert "check hosts.device_cloud and the slugs" in told.value.hint


@pytest.mark.contract("D8.3", "D8.4")
async def test_a_service_token_that_is_not_the_last_one_says_so(standin: StandIn) -> None:
    token = ServiceToken(Secret(standin.credentials["service_token"][:-1]))
    async with speaking_for_kit(standin, token) as client:
        for call in calls(None):
            with pytest.raises(Unauthorized) as told:
                await client.send(call)
            assert "not whole, has expired or was replaced" in told.value.hint


@pytest.mark.contract("D10.6")
async def test_an_evaluation_token_opens_location_until_its_trial_ends(
    standin: StandIn, here: ProjectSlugs, caplog: pytest.LogCaptureFixture
) -> None:
    _warn_once.cache_clear()
    token = EvaluationToken(Secret(standin.credentials["evaluation_token"]))
    async with speaking_for_kit(standin, token) as client:
        with caplog.at_level(logging.WARNING):
            position = await client.send(calls(None)[0])
        assert position.fulfilled_with.endswith("_EVAL")
        assert "30 days" in caplog.text
        with pytest.raises(CredentialMissing):
            await client.send(calls(here)[0])
        standin.clock.advance(31 * 86400)
        with pytest.raises(Unauthorized) as told:
            await client.send(calls(None)[0])
        assert "trial" in told.value.hint
        assert "service key" in told.value.hint


@pytest.mark.contract("D10.4")
async def test_a_service_key_names_the_device_served_and_opens_no_other_service(
    standin: StandIn,
) -> None:
    folder = Path(standin.credentials["service_key_file"]).parent
    keys = {"location": str(folder / "service-key-location.pem")}
    async with speaking_for_kit(standin, ServiceKeys(keys, standin.team_id)) as client:
        for call in calls(None, device_id="bench-kit-1")[:3] + calls(None)[3:]:
            await client.send(call)
        await client.send(calls(None)[0])
    history = await standin.client.get(
        "/v1/location/history?deviceId=bench-kit-1", headers=standin.bearer("api_key")
    )
    assert {one["serviceType"] for one in history.json()["items"]} == {"WIFI", "MCELL"}
    wrong = {"location": str(folder / "service-key-fota.pem")}
    async with speaking_for_kit(standin, ServiceKeys(wrong, standin.team_id)) as client:
        with pytest.raises(Unauthorized):
            await client.send(calls(None)[0])


@pytest.mark.contract("D8.5", "D10.7", "D1.5")
async def test_each_credential_goes_to_its_own_form_and_nothing_is_sent_with_another() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError(f"sent: {request.url}")

    tokens = {
        Scheme.ORGANIZATION_TOKEN: OrganizationToken(Secret("oat_test")),
        Scheme.SERVICE_TOKEN: ServiceToken(Secret("test")),
        Scheme.EVALUATION_TOKEN: EvaluationToken(Secret("test")),
    }
    urls = {Host.DEVICE_CLOUD: "https://cloud.invalid"}
    for scheme, token in tokens.items():
        project = None if scheme is Scheme.ORGANIZATION_TOKEN else ProjectSlugs("acme", "kits")
        client = HttpClient(answering_transport(answer), urls, Keyring([token]), kit_gate=open_gate)
        for call in calls(project):
            with pytest.raises(CredentialMissing):
                await client.send(call)
            with pytest.raises(WrongCredential):
                await client.send(call, scheme=scheme)


@pytest.mark.contract("D8.5")
async def test_both_forms_work_side_by_side(standin: StandIn, here: ProjectSlugs) -> None:
    service = ServiceToken(Secret(standin.credentials["service_token"]))
    async with speaking_for_kit(standin, organization_token(standin), service) as client:
        current = await client.send(calls(here)[0])
        assert await client.send(calls(None)[0]) == current


@pytest.mark.contract("D8.1")
async def test_the_switches_change_the_answer(standin: StandIn, here: ProjectSlugs) -> None:
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        plain = await client.send(calls(here)[0])
        sure = await client.send(calls(here, high_confidence=True)[0])
        assert sure.uncertainty_m > plain.uncertainty_m
        assert await client.send(calls(here, do_reply=False)[0]) is None
        array = GroundFix(here, access_points=POINTS, wifi_as_array=True)
        assert (await client.send(array)).lat == plain.lat
        lost = [{**CELLS[0], "eci": 1}]
        assert await client.send(LocateCell(here, cells=lost))
        with pytest.raises(NotFound):
            await client.send(LocateCell(here, cells=lost, fallback=False))
        with pytest.raises(InvalidRequest):
            await client.send(LocateWifi(here, access_points=POINTS[:1]))


@pytest.mark.parametrize(
    ("fault", "words"),
    [("huge-json=100", "larger than|at most"), ("deep-json", "another shape"),
     ("wrong-length=-9", "expected JSON")],
)  # fmt: skip
async def test_a_spoiled_answer_is_refused_by_name(
    standin: StandIn, here: ProjectSlugs, fault: str, words: str
) -> None:
    set_faults(standin.cloud, [f"{fault}@/v1/organizations/*"])
    async with speaking_for_kit(standin, organization_token(standin)) as client:
        for call in calls(here)[:3]:
            with pytest.raises(BadAnswer, match=words):
                await client.send(call)
