"""A board's run ends done, refused or failed; one that was cut off is made good by a rerun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from standin import StandIn
from virtual_tray import GOAL, TAG, PowerPulled, Tray, provision, station_of

from agent.provisioning.batch import run_board
from agent.provisioning.board import BoardLocation
from agent.provisioning.goal import CertificateSource, Goal, KeyOrigin, RegistrationMethod
from agent.provisioning.modem_board import ModemBoard
from agent.provisioning.plan import ProvisioningStep
from at.driver.modem import Modem
from at.protocol.errors import LinkLost


@pytest.mark.parametrize(
    "goal",
    [
        replace(
            GOAL, certificate=CertificateSource.NONE, registration=RegistrationMethod.PUBLIC_KEY
        ),
        replace(GOAL, key_origin=KeyOrigin.HOST, certificate=CertificateSource.SELF_SIGNED),
        replace(
            GOAL,
            registration=RegistrationMethod.CLAIM,
            certificate=CertificateSource.NONE,
            prove=False,
        ),
        replace(GOAL, id_prefix="nrf-"),
        replace(GOAL, registration=RegistrationMethod.NONE, prove=False),
    ],
    ids=["public-key", "host-key", "claim", "imei-id", "no-registration"],
)
async def test_every_way_ends_with_a_board_that_is_done(
    standin: StandIn, tmp_path: Path, goal: Goal
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
        assert (outcome.outcome, outcome.reason) == ("done", "")
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes) == ("unchanged", 0)


@pytest.mark.contract("D1.3")
async def test_old_firmware_is_refused_before_anything_is_written(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, firmware="mfw_nrf9160_1.2.3", model="nrf9160")
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step, outcome.exit, outcome.writes) == (
        "refused",
        "gate",
        4,
        0,
    )


async def test_the_mode_is_put_back_by_the_run_after_one_that_was_killed(
    standin: StandIn, tmp_path: Path
) -> None:
    """The host alone dies: the kit stays in the mode in which it took the credentials."""
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    transport = tray.transport(location.port)
    modem = Modem(transport)
    await modem.open()
    board = ModemBoard(modem)

    @asynccontextmanager
    async def same_kit(_place: BoardLocation) -> AsyncIterator[ModemBoard]:
        yield board

    def die(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.WRITE:
            board.set_mode = dead  # type: ignore[method-assign]
            raise PowerPulled

    async def dead(_mode: int) -> None:
        raise LinkLost("the process that would is dead")

    await board.set_mode(1)
    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, same_kit, die)
    assert (await board.read()).mode == 4
    board = ModemBoard(modem)
    async with station_of(standin, tmp_path) as station:
        outcome = await run_board(location, station, same_kit, lambda *_: None)
        assert outcome.outcome == "done", outcome.reason
    assert (await board.read()).mode == 1
    await board.set_mode(4)  # by somebody else, whose choice it stays
    async with station_of(standin, tmp_path) as station:
        await run_board(location, station, same_kit, lambda *_: None)
    assert (await board.read()).mode == 4
    await modem.close()


@pytest.mark.parametrize(
    "step", [step for step in ProvisioningStep if step is not ProvisioningStep.RESTORE]
)
async def test_power_pulled_at_a_step_is_made_good_by_a_rerun(
    standin: StandIn, tmp_path: Path, step: ProvisioningStep
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    def pull(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is step:
            raise PowerPulled

    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, tray.open, pull)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        assert outcome.ok, outcome.reason
        [record] = await station.ledger.call(lambda ledger: ledger.boards())
        async with tray.open(location) as board:
            held = [one for one in await board.credentials() if one.tag == TAG]
    assert sorted(one.type for one in held) == [0, 1, 2]
    assert record.registered_key


async def test_being_stopped_puts_the_mode_back(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    reached = asyncio.Event()
    modes: list[int] = []

    @asynccontextmanager
    async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with tray.open(location) as board:
            await board.set_mode(1)
            try:
                yield board
            finally:
                modes.append((await board.read()).mode)

    def at_key(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.KEY:
            reached.set()

    async with station_of(standin, tmp_path) as station:
        task = asyncio.create_task(run_board(location, station, opened, at_key))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert modes == [1]
