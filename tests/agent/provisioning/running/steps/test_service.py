"""The service is asked for what is still needed, and never for another key."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from agent.errors import Unauthorized
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ledger import BoardRecord
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.run_state import RunState
from agent.provisioning.running.steps.registrar import Registrar
from agent.provisioning.running.steps.service import ServiceSteps
from agent.retry import RetryPolicy
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.tables import CLAIMED, Claimed
from agent.standin.faults import active_faults, set_faults
from agent.standin.principal import DEVICE_KEYS
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import GOAL, PowerPulled, Tray, provision, station_of


@pytest.mark.contract("D10.5")
async def test_a_modem_without_time_is_told_how_to_get_it(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, replace(GOAL, set_clock=False)) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step, outcome.writes) == ("failed", "other-keys", 0)
    assert "--set-clock" in outcome.hint


async def test_a_key_that_the_service_has_lost_is_registered_again_and_no_other(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        [first] = await provision(station, tray, 1)
        table = standin.cloud.table(DEVICE_KEYS)
        [(name, before)] = table.items()
        table.delete(name)
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes, again.reason) == ("done", 0, "")
        assert table[name].public == before.public
        [last] = await provision(station, tray, 1)
    assert (first.outcome, last.outcome) == ("done", "unchanged")


@pytest.mark.contract("D10.8")
async def test_a_device_that_the_service_has_lost_is_onboarded_again_with_its_key(
    standin: StandIn, tmp_path: Path
) -> None:
    """It still has the key, so that the token alone would prove the board right."""
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        [first] = await provision(station, tray, 1)
        devices = registry(standin.cloud)
        devices.delete(devices.get(standin.team_id, first.device_id))
        keys = standin.cloud.table(DEVICE_KEYS).items()
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes, again.reason) == ("done", 0, "")
        assert devices.get(standin.team_id, first.device_id)
        assert standin.cloud.table(DEVICE_KEYS).items() == keys
        [last] = await provision(station, tray, 1)
    assert (first.outcome, last.outcome) == ("done", "unchanged")


async def test_a_device_that_the_service_took_and_does_not_have_is_not_called_done(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    set_faults(standin.cloud, ["server-error=404*9@GET /v1/devices/*"])
    async with station_of(standin, tmp_path) as station:
        [failed] = await provision(station, tray, 1)
        assert (failed.outcome, failed.step) == ("failed", "proof")
        assert failed.reason.endswith(f"has no device {failed.device_id}")
        assert failed.hint.startswith("run the same command again in a minute")
        set_faults(standin.cloud, [])
        assert (await provision(station, tray, 1))[0].ok
        set_faults(standin.cloud, ["server-error=404*9@GET /v1/devices/*"])
    # The key alone is what this one registers.
    bare = replace(GOAL, registration=RegistrationMethod.PUBLIC_KEY)
    async with station_of(standin, tmp_path, bare) as station:
        assert (await provision(station, tray, 1))[0].ok


async def test_a_token_of_a_key_that_was_just_registered_is_not_refused_for_its_registration(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    set_faults(standin.cloud, ["server-error=401*9@GET /v1/devices/*"])
    async with station_of(standin, tmp_path) as station:
        outcomes = [(await provision(station, tray, 1))[0] for _ in range(2)]
    for outcome in outcomes:
        assert (outcome.step, outcome.exit) == ("proof", 5)
        assert outcome.hint.startswith("the service took this key in this run: run the same")


@pytest.mark.parametrize("method", [RegistrationMethod.ONBOARD, RegistrationMethod.PUBLIC_KEY])
@pytest.mark.parametrize(
    "fault",
    ["server-error=500*1", "connection-reset=before*1", "connection-reset=after*1",
     "too-many-requests=0*1"],
)  # fmt: skip
async def test_a_registration_that_fails_once_is_sent_again_by_the_same_run(
    standin: StandIn, tmp_path: Path, method: RegistrationMethod, fault: str
) -> None:
    path = "/v1/devices" if method is RegistrationMethod.ONBOARD else "/v1/devices/public-keys"
    async with station_of(standin, tmp_path, replace(GOAL, registration=method)) as station:
        assert station.registrar is not None
        station.registrar.client._retries = RetryPolicy(first_s=0.01)
        set_faults(standin.cloud, [f"{fault}@POST {path}"])
        [outcome] = await provision(station, Tray(tmp_path), 1)
    assert (outcome.outcome, outcome.reason) == ("done", "")
    assert active_faults(standin.cloud) == []
    [(_, row)] = standin.cloud.table(DEVICE_KEYS).items()
    assert row.device_id == outcome.device_id


@pytest.mark.parametrize("method", [RegistrationMethod.ONBOARD, RegistrationMethod.PUBLIC_KEY])
async def test_the_time_that_the_service_asks_for_is_in_the_boards_reason(
    standin: StandIn, tmp_path: Path, method: RegistrationMethod
) -> None:
    async with station_of(standin, tmp_path, replace(GOAL, registration=method)) as station:
        set_faults(standin.cloud, ["too-many-requests=600@POST /v1/devices*"])
        [outcome] = await provision(station, Tray(tmp_path), 1)
        [record] = await station.ledger.call(boards_of)
    assert (outcome.outcome, outcome.step, outcome.exit) == ("failed", "register", 6)
    assert re.search(
        r"429 .*; the service asks to wait 600 s, until \d\d:\d\d:\d\d ", outcome.reason
    )
    assert record.reason == outcome.reason


async def test_a_board_that_is_not_to_be_registered_is_not_when_its_token_is_refused(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    goal = replace(GOAL, registration=RegistrationMethod.NONE, certificate=CertificateSource.NONE)
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step, outcome.exit) == ("failed", "proof", 5)
    assert outcome.hint.startswith("no key is given to the service: `--registration public-key`")
    assert not standin.cloud.table(DEVICE_KEYS).items()


@pytest.mark.parametrize(("alone", "finished"), [(True, "request-1"), (False, "")])
async def test_the_request_of_a_run_that_was_cut_off_counts_where_no_other_key_came_since(
    alone: bool, finished: str
) -> None:
    async def unfinished(_step: object) -> str:
        return "onboard kit-1 key"

    async def wait(_request_id: str) -> None:
        return

    ledger: Any = SimpleNamespace(
        record=BoardRecord("u-1", request_id="request-1"), unfinished=unfinished
    )
    board: Any = None
    registrar: Any = SimpleNamespace(wait=wait)
    steps = ServiceSteps(board, ledger, GOAL, registrar, alone)
    assert await steps._finished_request("onboard kit-1 key") == finished


async def test_where_another_key_of_the_board_may_be_registered_the_option_can_be_pasted() -> None:
    async def prove(*_: object) -> str:
        raise Unauthorized("401", status=401)

    ledger: Any = SimpleNamespace(record=BoardRecord("u-1"), state=RunState.CLAIMED)
    board: Any = SimpleNamespace(require_firmware=None)
    registrar: Any = SimpleNamespace(prove=prove, method=RegistrationMethod.ONBOARD)
    with pytest.raises(Unauthorized) as caught:
        await ServiceSteps(board, ledger, GOAL, registrar, alone=False).prove()
    assert caught.value.hint == (
        "the service may have another of the board's keys: `--second-tag` registers that of tag "
        f"{GOAL.security_tag}, and ends the life of the other"
    )


@pytest.mark.contract("D10.8")
async def test_a_claim_registers_no_key_and_the_record_says_so(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    claim = replace(GOAL, registration=RegistrationMethod.CLAIM, prove=False)
    async with station_of(standin, tmp_path, claim) as station:
        [outcome] = await provision(station, tray, 1)
        [record] = await station.ledger.call(boards_of)
    assert (outcome.outcome, record.registered_key) == ("done", "")
    assert record.registered_as == f"claim {record.uuid}"
    assert not standin.cloud.table(DEVICE_KEYS).items()
    async with station_of(standin, tmp_path) as station:
        [onboarded] = await provision(station, tray, 1)
        [record] = await station.ledger.call(boards_of)
    assert (onboarded.outcome, onboarded.writes) == ("done", 0)
    assert record.registered_key != ""


@pytest.mark.contract("D10.8")
@pytest.mark.parametrize(("team", "outcome"), [("another", "failed"), ("", "done")])
async def test_a_board_that_another_team_has_claimed_is_not_claimed_for_this_one(
    standin: StandIn, tmp_path: Path, team: str, outcome: str
) -> None:
    tray = Tray(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        uuid = (await board.read()).uuid
    claimed = Claimed(team=team or standin.team_id, tags=[], claimed_at=standin.clock.time())
    standin.cloud.table(CLAIMED).put(uuid, claimed)
    claim = replace(GOAL, registration=RegistrationMethod.CLAIM, prove=False)
    async with station_of(standin, tmp_path, claim) as station:
        [ended] = await provision(station, tray, 1)
    assert (ended.outcome, ended.reason_code) == (outcome, "conflict" if team else "")
    assert ended.hint.startswith("another team has claimed it" if team else "")


BARE = replace(GOAL, certificate=CertificateSource.NONE)
BY_IMEI = replace(BARE, id_prefix="nrf-", prove=False)


class KilledBeforeItSends(Registrar):
    async def submit(self, device_id: str, pem: str, attestation: str) -> str:
        raise PowerPulled


async def killed_at_register(standin: StandIn, folder: Path, tray: Tray, goal: Goal) -> None:
    async with station_of(standin, folder, goal) as station:
        assert station.registrar is not None
        station.registrar = KilledBeforeItSends(station.registrar.client, goal.registration)
        with suppress(PowerPulled):
            await provision(station, tray, 1)


async def test_another_device_id_is_registered_after_a_kill(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, BARE) as station:
        [usual] = await provision(station, tray, 1)
    await killed_at_register(standin, tmp_path, tray, BY_IMEI)
    async with station_of(standin, tmp_path, BY_IMEI) as station:
        [outcome] = await provision(station, tray, 1)
    assert outcome.outcome == "done"
    owners = {row.device_id for _, row in standin.cloud.table(DEVICE_KEYS).items()}
    assert owners == {usual.device_id, outcome.device_id}


async def test_a_device_of_another_team_is_not_called_right(
    standin: StandIn, tmp_path: Path
) -> None:
    """The API key was that of another team, and was corrected."""
    tray, devices, keys = Tray(tmp_path), registry(standin.cloud), standin.cloud.table(DEVICE_KEYS)
    async with station_of(standin, tmp_path) as station:
        [first] = await provision(station, tray, 1)
        device = devices.get(standin.team_id, first.device_id)
        devices.change(replace(device, team="another-team"))
        [(name, key)] = keys.items()
        keys.put(name, replace(key, team="another-team"))
        [other] = await provision(station, tray, 1)
        assert (other.outcome, other.step, other.reason_code) == ("failed", "proof", "not-found")
        assert "in another team than that of the API key" in other.reason
        assert "`cellagent config set api_key`" in other.hint
        devices.delete(devices.get("another-team", first.device_id))
        keys.delete(name)
        ends = [await provision(station, tray, 1) for _ in range(2)]
    assert [one.outcome for [one] in ends] == ["done", "unchanged"]


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_certificate_that_is_made_after_the_key_is_given_to_the_service_too(
    standin: StandIn, tmp_path: Path, *, is_killed: bool
) -> None:
    """The operator named the CA on the second day."""
    tray, sent = Tray(tmp_path), []

    class Records(Registrar):
        async def submit(self, device_id: str, pem: str, attestation: str) -> str:
            sent.append(pem)
            return await super().submit(device_id, pem, attestation)

    async with station_of(standin, tmp_path, BARE) as station:
        await provision(station, tray, 1)
    if is_killed:

        def pull(_location: BoardLocation, step: ProvisioningStep) -> None:
            if step is ProvisioningStep.REGISTER:
                raise PowerPulled

        async with station_of(standin, tmp_path) as station:
            with suppress(PowerPulled):
                await provision(station, tray, 1, pull)
    async with station_of(standin, tmp_path) as station:
        assert station.registrar is not None
        station.registrar = Records(station.registrar.client, GOAL.registration)
        ends = [await provision(station, tray, 1) for _ in range(2)]
        record = await station.ledger.call(lambda ledger: ledger.board(ends[0][0].uuid))
    assert [one.outcome for [one] in ends] == ["done", "unchanged"]
    assert record is not None
    assert sent == [record.certificate]
    assert sent[0].startswith("-----BEGIN CERTIFICATE-----")


async def test_a_certificate_that_came_after_a_request_is_sent_all_the_same(
    standin: StandIn, tmp_path: Path
) -> None:
    """The run was cut off while it waited for the request, which has no certificate."""
    tray, sent = Tray(tmp_path), []

    class Killed(Registrar):
        async def submit(self, device_id: str, pem: str, attestation: str) -> str:
            sent.append(pem)
            return await super().submit(device_id, pem, attestation)

        async def wait(self, request_id: str) -> None:
            if len(sent) == 1:
                raise PowerPulled
            await super().wait(request_id)

    ends = []
    for goal in (BARE, GOAL, GOAL):
        async with station_of(standin, tmp_path, goal) as station:
            assert station.registrar is not None
            station.registrar = Killed(station.registrar.client, goal.registration)
            with suppress(PowerPulled):
                ends += await provision(station, tray, 1)
            [record] = await station.ledger.call(boards_of)
    assert [one.outcome for one in ends] == ["done", "unchanged"]
    assert sent[1:] == [record.certificate]


async def test_a_key_that_the_service_has_lost_is_registered_after_a_kill(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        await provision(station, tray, 1)
    table = standin.cloud.table(DEVICE_KEYS)
    [(name, _)] = table.items()
    table.delete(name)
    await killed_at_register(standin, tmp_path, tray, GOAL)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.reason) == ("done", "")
