"""An operator's second thoughts: no key that is at work dies without a word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from standin import StandIn
from virtual_tray import GOAL, Tray, provision, station_of

from agent.errors import RefusedByRule
from agent.provisioning.batch import plan_boards
from agent.provisioning.board_run import Outcome
from agent.provisioning.goal import Goal
from at.commands.credentials import CredentialType
from at.virtual.transport import VirtualTransport

SECOND = 101
KEY = CredentialType.CLIENT_PRIVATE_KEY
OTHER_UUID = "50363154-3930-4d96-80f9-13121cf35adc"
BY_IMEI = replace(GOAL, id_prefix="nrf-")


def flash(tray: Tray, number: int) -> Path:
    return tray.folder / f"board{number}.json"


def erase(tray: Tray, number: int) -> None:
    """Empty the credential store of a board's modem."""
    state = json.loads(flash(tray, number).read_text())
    flash(tray, number).write_text(json.dumps({**state, "credentials": {}}))


async def run(
    standin: StandIn, folder: Path, tray: Tray, number: int, goal: Goal = GOAL
) -> list[Outcome]:
    async with station_of(standin, folder, goal) as station:
        return await provision(station, tray, number)


def service_keys(standin: StandIn) -> dict[str, str]:
    rows = standin.cloud.table("device_keys").items()
    return {row["device_id"]: row["public"] for _, row in rows}


async def test_an_erased_board_gets_another_key_only_when_told(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path, tray, 1)
    before = service_keys(standin)
    erase(tray, 0)
    [refused] = await run(standin, tmp_path, tray, 1)
    assert (refused.outcome, refused.exit, refused.writes) == ("refused", 4, 0)
    assert "erased, or it is a clone" in refused.reason
    assert "--rekey" in refused.hint
    assert service_keys(standin) == before
    [done] = await run(standin, tmp_path, tray, 1, replace(GOAL, rekey=True))
    assert (done.outcome, done.writes) == ("done", 3)
    assert service_keys(standin) != before
    [again] = await run(standin, tmp_path, tray, 1, replace(GOAL, rekey=True))
    assert (again.outcome, again.writes) == ("unchanged", 0)


@pytest.mark.parametrize("first_is_done", [False, True])
async def test_a_clone_in_the_same_run_is_named_and_a_rerun_gives_it_no_key(
    standin: StandIn, tmp_path: Path, first_is_done: bool
) -> None:
    tray = Tray(tmp_path)
    if first_is_done:
        await run(standin, tmp_path, tray, 1)
    before = service_keys(standin)
    give_identity_of_board_0(tray)
    for _ in range(2):
        outcomes = await run(standin, tmp_path, tray, 2)
        assert [(one.outcome, one.exit, one.writes) for one in outcomes] == [("refused", 4, 0)] * 2
        for one, other in zip(outcomes, ("board1", "board0"), strict=True):
            assert "a clone of the other, or one board is on two ports" in one.reason
            assert other in one.reason
            assert one.uuid
    assert service_keys(standin) == before
    if first_is_done:
        [alone] = await run(standin, tmp_path, tray, 1)
        assert alone.outcome == "unchanged"
        flash(tray, 1).replace(flash(tray, 0))
        [clone] = await run(standin, tmp_path, tray, 1)
        assert (clone.outcome, clone.writes) == ("refused", 0)
        assert service_keys(standin) == before


@pytest.mark.contract("D2.2")
async def test_two_boards_with_one_imei_are_refused_in_plan_and_run_before_any_write(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    give_identity_of_board_0(tray, OTHER_UUID)
    async with station_of(standin, tmp_path, BY_IMEI) as station:
        planned = await plan_boards(tray.locations(2), BY_IMEI, station.ledger, tray.open)
    for one in planned:
        assert (one.exit, one.plan.writes) == (RefusedByRule.exit_code, 0)
        assert f"would be device {one.device_id}" in one.plan.refusal
    outcomes = await run(standin, tmp_path, tray, 2, BY_IMEI)
    assert [(one.outcome, one.exit, one.writes) for one in outcomes] == [("refused", 4, 0)] * 2
    assert not service_keys(standin)
    assert [one.outcome for one in await run(standin, tmp_path, tray, 2)] == ["done"] * 2


def give_identity_of_board_0(tray: Tray, uuid: str = "") -> None:
    """Give board 1, a fresh one, the IMEI of board 0, and its UUID if no other is named."""
    usual = tray.transport

    def transport(port: str) -> VirtualTransport:
        if port != "board1":
            return usual(port)
        imei = "00440100000000"
        return VirtualTransport(str(flash(tray, 1)), imei=imei, uuid=uuid, instant=True)

    tray.transport = transport  # type: ignore[method-assign]
