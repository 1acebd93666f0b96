"""Each attempt of each slot is a record: of a board that was refused, lost, busy, cut off too."""

from __future__ import annotations

import asyncio
import importlib
import json
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import agent.provisioning
from agent import __version__
from agent.daemon.control.client import NotRunning, NotUnderstood
from agent.daemon.control.liveness import NotAnswering
from agent.daemon.kit.link import KitAway
from agent.errors import AgentError
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ledger import BoardRecord, LedgerReader, RunRecord, WorkOrder
from agent.provisioning.planning.consent import Consent, _code
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.batch import run_board
from agent.provisioning.running.board_run import Station
from at.protocol.errors import AtError, LinkLost
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import TAG, PowerPulled, Tray, provision, station_of


def all_runs(ledger: LedgerReader) -> list[RunRecord]:
    return [one for one in ledger.changes(kinds=[RunRecord]) if isinstance(one, RunRecord)]


async def runs_of(station: Station) -> list[RunRecord]:
    return await station.ledger.call(all_runs)


async def test_a_run_is_recorded_with_who_did_what_where_and_how_long_it_took(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        station.order = WorkOrder("early shift", "lot 7", "tracker")
        [outcome] = await provision(station, tray, 1)
        await provision(station, tray, 1)
        first, second = await runs_of(station)
        [board] = await station.ledger.call(boards_of)
        steps = await station.ledger.call(lambda ledger: ledger.steps(outcome.uuid))
    assert (first.outcome, first.exit, first.reason_code, first.writes) == ("done", 0, "", 3)
    assert (second.outcome, second.exit, second.writes) == ("unchanged", 0, 0)
    assert (first.uuid, first.device_id, first.security_tag) == (outcome.uuid, outcome.uuid, TAG)
    assert (first.slot, first.port, first.station) == ("S0", "board0", "station")
    assert (first.operator, first.lot, first.product) == ("early shift", "lot 7", "tracker")
    assert (first.cellagent, first.firmware) == (__version__, board.firmware)
    assert first.ended_at is not None
    assert first.ended_at > first.began_at
    times = json.loads(first.timings)
    assert list(times) == ["identity", "gate", "clock", "other-keys", "ca-chain", "key",
                           "certificate", "write", "verify", "register", "proof"]  # fmt: skip
    assert sum(times.values()) <= (first.ended_at - first.began_at).total_seconds() + 0.01
    assert (board.outcome, board.last_outcome) == ("done", "unchanged")
    assert (board.made_run, board.made_at) == (first.id, first.ended_at)
    assert {note.run for note in steps} == {first.id, second.id}
    assert [note.step for note in steps if note.run == second.id] == [
        "clock", "proof",  # a kit that was off knows no time
    ]  # fmt: skip


async def test_a_run_takes_as_long_as_it_does_when_the_hosts_clock_is_set_right_within_it(
    standin: StandIn, tmp_path: Path
) -> None:
    ahead = [timedelta(hours=1)]
    async with station_of(standin, tmp_path) as station:
        station.now = lambda: datetime.now(UTC) + (ahead.pop() if ahead else timedelta())
        [outcome] = await provision(station, Tray(tmp_path), 1)
        [run] = await runs_of(station)
    assert outcome.ok
    assert run.ended_at is not None
    assert run.ended_at > run.began_at


async def test_a_board_that_is_refused_or_lost_before_it_told_its_name_is_recorded(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, firmware="mfw_nrf9160_1.2.3", model="nrf9160")
    [location] = tray.locations(1)

    @asynccontextmanager
    async def lost(_location: BoardLocation) -> AsyncIterator[ModemBoard]:
        raise LinkLost("the cable was pulled", hint="plug it in")
        yield  # a generator, as every open board is

    async with station_of(standin, tmp_path) as station:
        [refused] = await provision(station, tray, 1)
        gone = await run_board(location, station, lost, lambda *_: None)
        runs = await runs_of(station)
        assert await station.ledger.call(boards_of) == []
    assert [(run.outcome, run.step, run.reason_code, run.uuid, run.slot) for run in runs] == [
        ("refused", "gate", "firmware", "", "S0"),
        ("failed", "find", "link-lost", "", "S0"),
    ]
    assert (runs[0].imei, runs[0].firmware) == ("004401000000006", "mfw_nrf9160_1.2.3")
    assert [run.exit for run in runs] == [refused.exit, gone.exit] == [4, 3]
    assert [run.reason for run in runs] == [refused.reason, gone.reason]
    assert (gone.location, gone.reason, gone.hint) == (
        location,
        "the cable was pulled",
        "plug it in",
    )
    assert all(run.ended_at is not None for run in runs)


async def test_a_board_that_somebody_else_has_is_recorded_as_busy(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    one, other = tray.locations(2)
    held = asyncio.Event()
    go_on = asyncio.Event()

    class Waits(ModemBoard):
        async def make_key(self, tag: int):  # type: ignore[no-untyped-def]
            held.set()
            await go_on.wait()
            return await super().make_key(tag)

    async with station_of(standin, tmp_path) as station, tray.open(one) as kit:

        @asynccontextmanager
        async def same_kit(_location: BoardLocation) -> AsyncIterator[ModemBoard]:
            yield Waits(kit._modem)

        first = asyncio.create_task(run_board(one, station, same_kit, lambda *_: None))
        await held.wait()
        busy = await run_board(other, station, same_kit, lambda *_: None)
        go_on.set()
        await first
        runs = await runs_of(station)
    assert busy.outcome == "busy"
    assert sorted((run.outcome, run.slot) for run in runs) == [("busy", "S1"), ("done", "S0")]
    assert {run.uuid for run in runs} == {busy.uuid}


async def test_a_run_that_was_stopped_is_interrupted_and_its_board_unfinished(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    at_key = asyncio.Event()
    async with station_of(standin, tmp_path) as station:
        task = asyncio.create_task(
            run_board(
                location, station, tray.open,
                lambda _, step: at_key.set() if step is ProvisioningStep.KEY else None,
            )
        )  # fmt: skip
        await at_key.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        [run] = await runs_of(station)
        [board] = await station.ledger.call(boards_of)
    assert (run.outcome, run.reason_code, run.step) == ("interrupted", "interrupted", "key")
    assert run.ended_at is not None
    assert (board.outcome, board.last_outcome) == ("unfinished", "unfinished")


async def test_a_run_that_was_killed_is_interrupted_by_the_next_one_at_the_time_of_its_last_note(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    def pull(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.CERTIFICATE:
            raise PowerPulled

    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, tray.open, pull)
    async with station_of(standin, tmp_path) as station:
        await provision(station, tray, 1)
        cut_off, done = await runs_of(station)
        steps = await station.ledger.call(lambda ledger: ledger.steps(done.uuid))
    assert (cut_off.outcome, cut_off.step, cut_off.writes) == ("interrupted", "key", 2)
    assert cut_off.ended_at == max(note.at for note in steps if note.run == cut_off.id)
    assert (done.outcome, done.writes) == ("done", 1)


class Killed(ModemBoard):
    """A board whose station dies at the `at`-th write: before it, or before its answer is there."""

    at = 0
    after = False
    writes = 0

    async def _killed(self, work):  # type: ignore[no-untyped-def]
        Killed.writes += 1
        ours = Killed.writes == Killed.at
        if ours and not Killed.after:
            work.close()
            raise PowerPulled
        result = await work
        if ours:
            raise PowerPulled
        return result

    async def write(self, tag: int, kind: int, content: str) -> None:
        await self._killed(super().write(tag, kind, content))

    async def delete(self, tag: int, kind: int) -> None:
        await self._killed(super().delete(tag, kind))

    async def make_key(self, tag: int):  # type: ignore[no-untyped-def]
        return await self._killed(super().make_key(tag))


def flash_writes(tray: Tray) -> int:
    return int(json.loads((tray.folder / "board0.json").read_text())["writes"])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_the_writes_are_exact_after_a_kill_at_any_of_them(
    standin: StandIn, tmp_path: Path, at: int, after: bool
) -> None:
    """What the modem's flash counted, whichever side of the write the kill was on."""
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    @asynccontextmanager
    async def killed(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with tray.open(location) as board:
            yield Killed(board._modem)

    Killed.at, Killed.after, Killed.writes = at, after, 0
    async with station_of(standin, tmp_path) as station:
        with pytest.raises(PowerPulled):
            await run_board(location, station, killed, lambda *_: None)
    before = flash_writes(tray)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        runs = await runs_of(station)
        record = await station.ledger.call(lambda ledger: ledger.board(outcome.uuid))
    assert outcome.outcome == "done", outcome.reason
    assert isinstance(record, BoardRecord)
    assert [run.writes for run in runs] == [before, flash_writes(tray) - before]
    assert record.writes == flash_writes(tray)
    assert outcome.writes == runs[-1].writes


def test_every_reason_code_is_documented() -> None:
    """Of each error that a board may end with, and of each refusal of a plan."""
    root = Path(__file__).parents[4]
    page = (root / "docs" / "reference" / "ledger.md").read_text()
    rows = page.partition("### Reason codes")[2].partition("\n## ")[0].splitlines()
    documented = {code for row in rows for code in re.findall(r"`([a-z-]+)`", row.split("|")[1] if
                  row.startswith("|") else "")}  # fmt: skip
    for module in pkgutil.walk_packages(agent.provisioning.__path__, "agent.provisioning."):
        if "migrations" not in module.name:
            importlib.import_module(module.name)
    kinds = {one.kind for base in (AgentError, AtError) for one in family(base)}
    source = "".join(path.read_text() for path in (root / "agent" / "provisioning").rglob("*.py"))
    refusals = set(re.findall(r'reason_code(?:: str)? ?= ?"([a-z-]+)"', source))
    refusals |= {_code(frozenset(missing)) for missing in [*([one] for one in Consent), []]}
    # Of a kit whose modem the running agent is to lend.
    lent = {one.kind for one in (KitAway, NotRunning, NotAnswering, NotUnderstood)}
    assert documented == kinds | refusals | lent | {"interrupted"}


def family(kind: type[AgentError] | type[AtError]) -> Iterator[type[AgentError] | type[AtError]]:
    rooms = ("agent.errors", "agent.config", "agent.files", "agent.provisioning", "at.")
    if kind.__module__.startswith(rooms):
        yield kind
    for one in kind.__subclasses__():
        yield from family(one)
