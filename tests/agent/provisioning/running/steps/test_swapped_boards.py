"""Another board is put in the place of one in its run: it is told, and each stays what it is."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.limits import Limit, Quantity
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.planning.goal import CertificateSource, KeyOrigin, RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.batch import run_board
from agent.provisioning.running.board_ledger import BoardLedger
from agent.provisioning.running.steps import commanded_store
from agent.standin.device_cloud.tables import CLAIMED
from at.commands.credentials import CredentialType
from at.driver.modem import Modem
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import CA_CHAIN, GOAL, TAG, Opener, Tray, station_of


async def test_a_key_that_another_board_signs_for_is_not_taken(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    class AnswersForAnother(ModemBoard):
        async def make_key(self, tag: int):  # type: ignore[no-untyped-def]
            return replace(await super().make_key(tag), uuid="another")

    async with station_of(standin, tmp_path) as station:
        outcome = await run_board(
            location, station, tray.opening(AnswersForAnother), lambda *_: None
        )
    assert (outcome.outcome, outcome.step) == ("swapped", "key")
    assert "made by another" in outcome.reason


async def test_a_board_that_is_swapped_while_it_is_written_to_is_told_as_such(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path) as station, tray.open(other) as second:

        class SwappedMeanwhile(ModemBoard):
            async def write(self, tag: int, kind: int, content: str) -> None:
                await super().write(tag, kind, content)
                self._modem = second._modem

        outcome = await run_board(
            location, station, tray.opening(SwappedMeanwhile), lambda *_: None
        )
    assert (outcome.outcome, outcome.step) == ("swapped", "ca-chain")
    assert outcome.reason.endswith("at the write, which may have gone to the other board")
    assert outcome.hint.endswith("run the other one, too: that tells what it holds now")


def swapped_before(second: ModemBoard, method: str, time: int) -> type[ModemBoard]:
    """Return boards in whose place `second` is put before the `time`-th call of a method."""
    calls = itertools.count(1)

    async def called(board: ModemBoard, *arguments: object) -> object:
        if next(calls) == time:
            board._modem = second._modem
        return await getattr(ModemBoard, method)(board, *arguments)

    return type("Swapped", (ModemBoard,), {method: called})


def swapped_at(
    step: ProvisioningStep, tray: Tray, second: ModemBoard
) -> tuple[Opener, Callable[[BoardLocation, ProvisioningStep], None]]:
    """Return what opens a board, and what is to be called at each step: it swaps it at one."""
    boards: list[ModemBoard] = []

    def noted(modem: Modem) -> ModemBoard:
        boards.append(ModemBoard(modem))
        return boards[-1]

    def swap(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is step:
            boards[-1]._modem = second._modem

    return tray.opening(noted), swap


@pytest.mark.parametrize(
    ("method", "time"), [("_has_time", 2), ("token", 1), ("credentials", 2), ("credentials", 3)]
)
async def test_what_another_board_says_amid_a_step_is_no_failure_of_this_one(
    standin: StandIn, tmp_path: Path, method: str, time: int
) -> None:
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path) as station, tray.open(other) as second:
        swapped = swapped_before(second, method, time)

        outcome = await run_board(location, station, tray.opening(swapped), lambda *_: None)
    assert (outcome.outcome, outcome.exit) == ("swapped", 4), outcome.reason
    assert outcome.reason.endswith("at a step that failed")


@pytest.mark.parametrize(
    ("time", "when"), [(1, "the reading of what it holds"), (2, "the listing of its key")]
)
async def test_what_another_board_holds_is_not_taken_for_what_this_one_holds(
    standin: StandIn, tmp_path: Path, time: int, when: str
) -> None:
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path) as station:
        assert (await run_board(other, station, tray.open, lambda *_: None)).ok
        async with tray.open(other) as second:
            swapped = swapped_before(second, "credentials", time)

            outcome = await run_board(location, station, tray.opening(swapped), lambda *_: None)
        assert outcome.outcome == "swapped"
        assert outcome.reason.endswith(f"at {when}")
        assert (await run_board(location, station, tray.open, lambda *_: None)).ok


@pytest.mark.parametrize(
    ("method", "time", "others"), [("write", 1, 0), ("set_mode", 1, 4), ("set_mode", 2, 1)]
)
async def test_the_mode_of_a_board_that_was_swapped_is_put_back_once_it_is_there_again(
    standin: StandIn, tmp_path: Path, method: str, time: int, others: int
) -> None:
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    async with (
        station_of(standin, tmp_path) as station,
        tray.open(location) as first,
        tray.open(other) as second,
    ):
        await first.set_mode(1)
        swapped = swapped_before(second, method, time)

        @asynccontextmanager
        async def opened(_location: BoardLocation) -> AsyncIterator[ModemBoard]:
            yield swapped(first._modem)

        outcome = await run_board(location, station, opened, lambda *_: None)
        assert outcome.outcome == "swapped", outcome.reason
        # Between the look at the board and its command a swap is told, and cannot be prevented.
        assert (await second.read()).mode == others
        assert (await run_board(location, station, opened, lambda *_: None)).ok
        assert (await first.read()).mode == 1


@pytest.mark.parametrize(
    ("swap_at", "others", "when"),
    [
        (ProvisioningStep.ONLINE, 0, "the change of its mode"),
        ("go_online", 1, "the change of its mode, which may have gone to the other board"),
        ("CreateProvisioningCommand", 0, "the start of its provisioning client"),
        ("take_commands", 1, "a step that failed, which may have gone to the other board"),
    ],
)
async def test_the_radio_of_another_board_is_turned_on_for_a_claimed_one_only_where_that_is_told(
    standin: StandIn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    swap_at: ProvisioningStep | str,
    others: int,
    when: str,
) -> None:
    """The first one was online, and its mode is to be put back since a deletion."""
    claim = replace(GOAL, registration=RegistrationMethod.CLAIM, replace=frozenset({(TAG, 2)}))
    kit = {"firmware": "serial-modem-2.0.0", "provisioning": standin.urls["provisioning"]}
    tray = Tray(tmp_path, **kit)
    [location, other] = tray.locations(2)
    async with (
        station_of(standin, tmp_path, claim) as station,
        tray.open(location) as board,
        tray.open(other) as second,
    ):
        await board.make_key(TAG)
        await board.set_mode(1)

        @asynccontextmanager
        async def opened(_location: BoardLocation) -> AsyncIterator[ModemBoard]:
            yield board

        def swap(_place: object, at: object) -> None:
            if at is swap_at:
                board._modem = second._modem

        for owner in (board, commanded_store):
            if isinstance(swap_at, str) and (call := getattr(owner, swap_at, None)):
                swapping = partial(_swapping, partial(swap, "", swap_at), call)
                monkeypatch.setattr(owner, swap_at, swapping)
        outcome = await run_board(location, station, opened, swap)
        assert outcome.outcome == "swapped"
        assert f" at {when}; the modem's mode could not be put back" in outcome.reason
        assert (await second.read()).mode == others


def _swapping(swap: Callable[[], None], call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    swap()
    return call(*given, **named)


@pytest.mark.parametrize(
    ("method", "when"),
    [("certificate", "the reading of its certificate"), ("measure", "the judgement of its limits")],
)
async def test_a_board_is_not_refused_for_what_another_one_says(
    standin: StandIn, tmp_path: Path, method: str, when: str
) -> None:
    tray, goal = Tray(tmp_path), replace(GOAL, limits=(Limit(Quantity.SUPPLY, 9000),))
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path, goal) as station, tray.open(other) as second:
        if method == "certificate":
            async with tray.open(location) as board:
                await board.write(TAG, CredentialType.CLIENT_CERTIFICATE, CA_CHAIN)
        swapped = swapped_before(second, method, 1)

        outcome = await run_board(location, station, tray.opening(swapped), lambda *_: None)
    assert (outcome.outcome, outcome.writes) == ("swapped", 0)
    assert outcome.reason.endswith(f" at {when}")


async def test_a_board_that_is_put_there_while_the_ledger_is_written_keeps_its_key(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = replace(GOAL, key_origin=KeyOrigin.HOST, certificate=CertificateSource.SELF_SIGNED)
    tray, begin = Tray(tmp_path), BoardLedger.begin
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path, host) as station:
        assert (await run_board(other, station, tray.open, lambda *_: None)).ok
        async with tray.open(location) as first, tray.open(other) as second:
            before = await second.credentials()

            @asynccontextmanager
            async def opened(_location: BoardLocation) -> AsyncIterator[ModemBoard]:
                yield first

            async def swapping(
                ledger: BoardLedger, step: ProvisioningStep, *more: Any, **named: Any
            ) -> None:
                await begin(ledger, step, *more, **named)
                if step is ProvisioningStep.KEY:
                    first._modem = second._modem

            monkeypatch.setattr(BoardLedger, "begin", swapping)
            outcome = await run_board(location, station, opened, lambda *_: None)
            assert (outcome.outcome, outcome.step, outcome.writes) == ("swapped", "key", 1)
            assert await second.credentials() == before


@pytest.mark.parametrize(
    "method", [RegistrationMethod.CLAIM, RegistrationMethod.ATTESTATION], ids=lambda one: one.value
)
async def test_the_attestation_of_another_board_brings_none_into_the_team(
    standin: StandIn, tmp_path: Path, method: RegistrationMethod
) -> None:
    tray, goal = Tray(tmp_path), replace(GOAL, registration=method, prove=False)
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path, goal) as station, tray.open(other) as second:
        swapped = swapped_before(second, "attestation", 1)

        outcome = await run_board(location, station, tray.opening(swapped), lambda *_: None)
        [record] = await station.ledger.call(boards_of)
    assert (outcome.outcome, outcome.step) == ("swapped", "register")
    assert (record.attestation, record.registered_as) == ("", "")
    assert not standin.cloud.table(CLAIMED).items()


async def test_a_deletion_that_would_be_another_boards_is_called_one(
    standin: StandIn, tmp_path: Path
) -> None:
    tray, allowed = Tray(tmp_path), replace(GOAL, replace=frozenset({(TAG, 2)}))
    [location, other] = tray.locations(2)
    async with tray.open(location) as board:
        await board.make_key(TAG)
    async with station_of(standin, tmp_path, allowed) as station, tray.open(other) as second:
        opened, swap = swapped_at(ProvisioningStep.CLEAR, tray, second)
        outcome = await run_board(location, station, opened, swap)
    assert (outcome.outcome, outcome.step) == ("swapped", "clear")
    assert outcome.reason.endswith("at the deletion")


@pytest.mark.parametrize(
    "swap_at",
    [
        ProvisioningStep.CA_CHAIN,
        ProvisioningStep.KEY,
        ProvisioningStep.WRITE,
        ProvisioningStep.VERIFY,
    ],
)
async def test_a_swapped_board_gets_no_key(
    standin: StandIn, tmp_path: Path, swap_at: ProvisioningStep
) -> None:
    """Another board answers on the port from some step on: it is told, nothing is written to it."""
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    async with station_of(standin, tmp_path) as station, tray.open(other) as second:
        opened, swap = swapped_at(swap_at, tray, second)
        outcome = await run_board(location, station, opened, swap)
        assert (outcome.outcome, outcome.exit) == ("swapped", 4), outcome.reason
        assert [one for one in await second.credentials() if one.tag == TAG] == []


async def test_a_board_that_takes_the_place_of_one_before_it_goes_offline_stays_on(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    async with (
        station_of(standin, tmp_path) as station,
        tray.open(location) as board,
        tray.open(other) as second,
    ):
        for each in (board, second):
            await each.set_mode(1)

        @asynccontextmanager
        async def opened(_location: BoardLocation) -> AsyncIterator[ModemBoard]:
            yield board

        def swap(_place: BoardLocation, at: ProvisioningStep) -> None:
            if at is ProvisioningStep.OFFLINE:
                board._modem = second._modem

        outcome = await run_board(location, station, opened, swap)
        assert (outcome.outcome, outcome.step) == ("swapped", "offline"), outcome.reason
        assert (await second.read()).mode == 1
