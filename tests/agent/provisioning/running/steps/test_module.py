"""An nRF93M1 on the bench: its own token onboards it, beside kits of the nRF91."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.errors import Conflict
from agent.provisioning.exports import for_bulk_onboarding
from agent.provisioning.ledger import Ledger
from agent.provisioning.ledger.records import KeyRecord
from agent.provisioning.planning.goal import RegistrationMethod
from agent.provisioning.running.batch import plan_boards
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.steps.registrar import Registrar
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.faults import set_faults
from at.virtual import signing
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import GOAL, PowerPulled, Tray, provision, station_of


class MixedTray(Tray):
    """Board 0 is of the nRF91, the others are nRF93M1."""

    def transport(self, port: str) -> VirtualTransport:
        if port == "board0":
            return super().transport(port)
        self.options = {"model": "nrf93m1"}
        try:
            return super().transport(port)
        finally:
            self.options = {}


async def run_module(station: Station, tray: Tray) -> Outcome:
    [_, outcome] = await provision(station, tray, 2)
    return outcome


def tags_and_keys(ledger: Ledger, uuid: str) -> list[tuple[int | None, str]]:
    keys: list[KeyRecord] = list(ledger.keys(uuid))
    return [(key.security_tag, key.registered_as) for key in keys if key.retired_at is None]


def assert_no_token_in(folder: Path) -> None:
    files = list(folder.glob("ledger.sqlite*"))
    assert files
    assert not [file for file in files if b"eyJ" in file.read_bytes()]


def subject_of(standin: StandIn, uuid: str) -> str | None:
    device = registry(standin.cloud).find(uuid)
    return device.fields.sub_type if device else None


@pytest.mark.contract("C10", "D10.8")
async def test_a_mixed_tray_is_planned_provisioned_and_then_left_alone(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = MixedTray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        planned = await plan_boards(
            tray.locations(3), GOAL, station.ledger, tray.open, station.now()
        )
        assert [[one.step.value for one in board.plan.steps] for board in planned[1:]] == [
            ["gate", "identity", "clock", "register", "proof"]
        ] * 2
        assert [board.plan.writes for board in planned] == [3, 0, 0]
        outcomes = await provision(station, tray, 3)
        assert [one.outcome for one in outcomes] == ["done"] * 3, [one.reason for one in outcomes]
        assert [one.writes for one in outcomes] == [3, 0, 0]
        records = await station.ledger.call(boards_of)
        of = {record.uuid: record for record in records}
        modules = [of[one.uuid] for one in outcomes[1:]]
        for one in modules:
            assert subject_of(standin, one.uuid) == "nRF93M1"
            assert await station.ledger.call(lambda to, uuid=one.uuid: tags_and_keys(to, uuid)) == [
                (None, f"token {one.uuid}")
            ]
        kit = tray.transports["board1"].modem.kit
        assert modules[0].public_key == signing.public_pem(signing.identity_key(kit))
        again = await provision(station, tray, 3)
        assert [one.outcome for one in again] == ["unchanged"] * 3
    # A module has no certificate to onboard it with: the CSV of the other way leaves it out.
    assert len(list(for_bulk_onboarding(records))) == 1


async def test_no_token_is_made_without_a_time_and_none_is_kept(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = MixedTray(tmp_path)
    async with station_of(standin, tmp_path, replace(GOAL, set_clock=False)) as station:
        refused = await run_module(station, tray)
        assert (refused.outcome, refused.step) == ("failed", "register")
        assert "--set-clock" in refused.hint
    async with station_of(standin, tmp_path) as station:
        assert (await run_module(station, tray)).outcome == "done"
    assert_no_token_in(tmp_path)


async def test_a_module_that_no_token_may_onboard_is_told_what_does(
    standin: StandIn, tmp_path: Path
) -> None:
    goal = replace(GOAL, registration=RegistrationMethod.NONE)
    async with station_of(standin, tmp_path, goal) as station:
        outcome = await run_module(station, MixedTray(tmp_path))
    assert (outcome.outcome, outcome.step) == ("failed", "proof")
    # In backticks an option is one to be added: the hint becomes the command with it.
    assert outcome.hint.startswith("`--registration onboard` has")


class KilledRegistrar(Registrar):
    """The process dies before the token is sent, or after it was taken."""

    after = False

    async def onboard_by_token(self, device_id: str, token: str) -> None:
        if self.after:
            await Registrar.onboard_by_token(self, device_id, token)
        raise PowerPulled


class KilledAfterwards(KilledRegistrar):
    after = True


@pytest.mark.parametrize("registrar", [KilledRegistrar, KilledAfterwards])
async def test_a_run_that_was_killed_at_its_token_is_finished_by_the_next(
    standin: StandIn, tmp_path: Path, registrar: type[Registrar]
) -> None:
    tray = MixedTray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        assert station.registrar is not None
        station.registrar = registrar(station.registrar.client, GOAL.registration)
        with suppress(PowerPulled):
            await provision(station, tray, 2)
    async with station_of(standin, tmp_path) as station:
        assert (await run_module(station, tray)).outcome == "done"
        assert (await run_module(station, tray)).outcome == "unchanged"


async def test_a_device_that_the_service_has_lost_is_onboarded_again(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = MixedTray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        outcome = await run_module(station, tray)
        devices = registry(standin.cloud)
        lost = devices.find(outcome.uuid)
        assert lost is not None
        devices.delete(lost)
        again = await run_module(station, tray)
        assert (again.outcome, again.reason) == ("done", "")
    assert subject_of(standin, outcome.uuid) == "nRF93M1"


async def test_a_conflict_is_an_error_unless_the_team_has_the_device(
    standin: StandIn, tmp_path: Path
) -> None:
    async with station_of(standin, tmp_path) as station:
        registrar = station.registrar
        assert registrar is not None
        set_faults(standin.cloud, ["server-error=409*1@POST /v1/devices/*"])
        with pytest.raises(Conflict):
            await registrar.onboard_by_token("00000000-0000-4000-8000-000000000000", "a.b.c")


async def test_another_module_that_says_the_same_uuid_needs_a_word(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = MixedTray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        first = await run_module(station, tray)

        def other_key(ledger: Ledger) -> None:
            statement = "UPDATE keys SET public_key = 'another' WHERE uuid = :uuid"
            with ledger._database.transaction(writes=True) as execute:
                execute(statement, {"uuid": first.uuid})

        await station.ledger.call(other_key)
        refused = await run_module(station, tray)
        assert (refused.outcome, "--rekey" in refused.hint) == ("refused", True)
        assert "another module says that it is this one" in refused.reason
        station.goal = replace(GOAL, rekey=True)
        assert (await run_module(station, tray)).outcome == "done"


async def test_a_goal_without_registration_only_asks_whether_the_team_has_it(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = MixedTray(tmp_path)
    goal = replace(GOAL, registration=RegistrationMethod.NONE)
    async with station_of(standin, tmp_path, goal) as station:
        refused = await run_module(station, tray)
        assert (refused.outcome, refused.step, refused.exit) == ("failed", "proof", 1)
        station.goal = replace(goal, prove=False)
        assert (await run_module(station, tray)).outcome == "unchanged"
