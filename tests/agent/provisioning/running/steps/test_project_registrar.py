"""Boards come into a project with an organization auth token, and no API key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.config.project import ProjectSlugs
from agent.errors import ConfigError, UsageError
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.steps.project_registrar import ProjectRegistrar, require_fitting
from agent.standin.device_cloud.devices.registry import registry
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import client_with, organization_token
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import GOAL, PowerPulled, Tray, provision, station_of

ATTESTED = replace(
    GOAL,
    registration=RegistrationMethod.ATTESTATION,
    certificate=CertificateSource.NONE,
    prove=False,
)


class MixedTray(Tray):
    """Board 0 is of the nRF91, board 1 an nRF93M1."""

    def transport(self, port: str) -> VirtualTransport:
        self.options = {"model": "nrf93m1"} if port == "board1" else {}
        return super().transport(port)


@asynccontextmanager
async def project_station(
    standin: StandIn,
    folder: Path,
    goal: Goal,
    kind: type[ProjectRegistrar] = ProjectRegistrar,
    team_id: str | None = None,
) -> AsyncIterator[Station]:
    async with (
        station_of(standin, folder, goal) as station,
        client_with(standin, organization_token(standin)) as client,
    ):
        station.registrar = kind(
            client,
            goal.registration,
            project=ProjectSlugs(standin.organization, standin.project),
            team_id=standin.cloud.team_id if team_id is None else team_id,
        )
        station.registrar.require(set_clock=True, prove=goal.prove)
        yield station


@pytest.mark.contract("D10.8")
@pytest.mark.parametrize("goal", [GOAL, ATTESTED], ids=["certificate", "attestation"])
async def test_a_mixed_tray_comes_into_the_project_and_then_is_left_alone(
    standin: StandIn, tmp_path: Path, goal: Goal
) -> None:
    tray = MixedTray(tmp_path)
    async with project_station(standin, tmp_path, goal) as station:
        outcomes = await provision(station, tray, 2)
        assert [(one.outcome, one.reason) for one in outcomes] == [("done", "")] * 2
        again = await provision(station, tray, 2)
        assert [one.outcome for one in again] == ["unchanged"] * 2
        records = await station.ledger.call(boards_of)
    assert {record.registered_as.partition(" ")[0] for record in records} == {
        goal.registration.value, "token"
    }  # fmt: skip
    assert all(registry(standin.cloud).find(one.uuid) for one in outcomes)


async def test_a_device_that_is_not_found_in_a_project_is_not_taken_for_lost(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with project_station(standin, tmp_path, GOAL) as station:
        [first] = await provision(station, tray, 1)
        devices = registry(standin.cloud)
        devices.delete(devices.get(standin.team_id, first.device_id))
        [again] = await provision(station, tray, 1)
    assert (first.outcome, again.outcome) == ("done", "unchanged")


class KilledBeforeItWaits(ProjectRegistrar):
    async def wait(self, request_id: str) -> None:
        raise PowerPulled


async def test_a_run_that_was_killed_waits_for_the_result_and_sends_nothing_again(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with project_station(standin, tmp_path, GOAL, KilledBeforeItWaits) as station:
        with suppress(PowerPulled):
            await provision(station, tray, 1)
    sent = await bulk_requests(standin)
    async with project_station(standin, tmp_path, GOAL) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, len(sent)) == ("done", 1)
    assert await bulk_requests(standin) == sent


@pytest.mark.parametrize("goal", [GOAL, ATTESTED], ids=["certificate", "attestation"])
async def test_a_board_that_is_in_another_project_is_not_called_right(
    standin: StandIn, tmp_path: Path, goal: Goal
) -> None:
    """The slug was that of another project, and was corrected."""
    tray, sent = MixedTray(tmp_path), []

    class Records(ProjectRegistrar):
        async def submit(self, device_id: str, pem: str, attestation: str) -> str:
            sent.append(device_id)
            return await super().submit(device_id, pem, attestation)

        async def onboard_by_token(self, device_id: str, token: str) -> None:
            sent.append(device_id)
            await super().onboard_by_token(device_id, token)

    outcomes = []
    for slugs in ("acme/wrong", "acme/kits", "acme/kits"):
        async with project_station(
            standin, tmp_path, replace(goal, into=slugs), Records
        ) as station:
            outcomes += await provision(station, tray, 2)
            records = await station.ledger.call(boards_of)
    assert [one.outcome for one in outcomes] == [*["done"] * 4, *["unchanged"] * 2]
    assert sorted(sent) == sorted(2 * [one.uuid for one in outcomes[:2]])
    assert all(" into acme/kits " in record.registered_as for record in records)


async def bulk_requests(standin: StandIn) -> list[object]:
    path, headers = "/v1/bulk-ops-requests", standin.bearer("api_key")
    items = (await standin.client.get(path, headers=headers)).json()["items"]
    return [one["bulkOpsRequestId"] for one in items]


async def test_a_module_needs_to_know_the_team_that_it_signs_for(
    standin: StandIn, tmp_path: Path
) -> None:
    async with project_station(standin, tmp_path, GOAL, team_id="") as station:
        _, module = await provision(station, MixedTray(tmp_path), 2)
        assert module.outcome == "failed"
        assert "account.team_id" in module.reason + module.hint
        assert station.registrar is not None
        with pytest.raises(ConfigError):
            await station.registrar.team()


@pytest.mark.parametrize(
    ("goal", "way_out"),
    [
        (replace(GOAL, registration=RegistrationMethod.PUBLIC_KEY), "--registration onboard"),
        (replace(GOAL, registration=RegistrationMethod.CLAIM), "--registration onboard"),
        (replace(GOAL, certificate=CertificateSource.NONE), "provisioning.device_ca_file"),
    ],
)
def test_a_goal_that_a_project_does_not_take_is_refused_before_any_board(
    goal: Goal, way_out: str
) -> None:
    with pytest.raises(UsageError) as refused:
        require_fitting(goal)
    assert way_out in refused.value.hint
    require_fitting(GOAL)
    require_fitting(ATTESTED)
