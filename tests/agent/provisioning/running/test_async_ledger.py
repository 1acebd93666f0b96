"""How many times the ledger is asked, and what becomes of changes that are made together."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ledger import BoardBusy, LabelTaken, Ledger, LedgerError
from agent.provisioning.ledger.backend import DatabaseFailed
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running import async_ledger
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.board_ledger import BoardLedger
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.claimed_boards import (
    END,
    NEVER_S,
    claimed,
    ledger_of,
    one_message,
    steps,
)
from tests.support.provisioning.far_database import ClientFrames, FarDatabase, far_database
from tests.support.provisioning.ledgers import OTHER, UUID, opened, run_of, until_free
from tests.support.provisioning.virtual_tray import Tray, provision, station_of

THIRD = "50503041-3633-4261-803d-1e2b8f70333c"


async def test_a_board_takes_six_round_trips_and_a_finished_one_two(
    standin: StandIn, tmp_path: Path, database: str
) -> None:
    with far_database(database) as far:
        async with station_of(standin, tmp_path, address=far.url) as station:
            tray = Tray(tmp_path)
            opened_in, began = far.trips, far.trips
            # No note goes alone, however slow this machine is.
            station.ledger._alone_after_s = NEVER_S
            [first] = await provision(station, tray, 1)
            took, began = far.trips - began, far.trips
            [again] = await provision(station, tray, 1)
            took_again = far.trips - began
    assert (first.outcome, again.outcome) == ("done", "unchanged")
    # A new one: to connect, to find no tables, to look again once it is alone, to make them.
    assert (opened_in, took, took_again) == (4, 6, 2)
    with far_database(database) as far:
        opened(far.url).close()
        assert far.trips == 2  # to connect, and to look


async def test_boards_that_one_answer_lets_go_on_are_claimed_in_one_message(database: str) -> None:
    with far_database(database) as far:
        async with ledger_of(far.url) as ledger:
            await ledger.opened()
            before = far.trips
            await asyncio.gather(*(claimed(ledger, f"{UUID[:-2]}{n:02}") for n in range(64)))
            assert far.trips - before == 1


@given(st.data())
def test_the_trips_of_a_client_are_the_same_however_its_bytes_are_cut(data: st.DataObject) -> None:
    def frame(kind: bytes, size: int) -> bytes:
        return kind + (size + 4).to_bytes(4, "big") + bytes(size)

    # It starts, sends a password, asks for a row within a message, and ends two messages.
    kinds = [b"", b"p", b"P", b"E", b"H", b"E", b"S", b"H", b"Q"]
    sent = b"".join(frame(kind, data.draw(st.integers(0, 70))) for kind in kinds)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)))))
    frames = ClientFrames()
    pieces = [sent[a:b] for a, b in pairwise([0, *cuts, len(sent)])]
    assert sum(map(frames.waits_in, pieces)) == 5


class AskedTray(Tray):
    """A tray whose ledger is opened only once a board was opened."""

    def __init__(self, folder: Path, ledger: Path) -> None:
        super().__init__(folder)
        self.ledger = ledger
        self.asked = threading.Event()

    @asynccontextmanager
    async def open(self, location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with super().open(location) as board:
            self.asked.set()
            yield board

    def opens(self) -> Ledger:
        assert self.asked.wait(30)
        return opened(str(self.ledger))


async def test_boards_tell_what_they_are_while_the_ledger_is_opened(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = AskedTray(tmp_path, tmp_path / "late.sqlite")
    async with station_of(standin, tmp_path) as station:
        station.ledger = AsyncLedger(tray.opens)
        [outcome] = await provision(station, tray, 1)
        station.ledger.close()
    assert outcome.outcome == "done"


async def test_a_ledger_that_is_not_opened_yet_holds_up_no_end_and_is_closed_once_it_is(
    tmp_path: Path,
) -> None:
    answers, was_closed = threading.Event(), threading.Event()
    late = opened(f"{tmp_path}/late.sqlite")

    def opens() -> Ledger:
        assert answers.wait(30)
        return late

    ledger = AsyncLedger(opens)
    noted = ledger.note(lambda to: to.end_lost_runs())
    close = late.close
    late.close = was_closed.set  # type: ignore[method-assign]
    ledger.close()
    assert noted.cancelled()
    answers.set()
    assert was_closed.wait(30)
    close()


async def test_a_run_that_is_stopped_before_the_ledger_answers_does_not_wait_for_it(
    standin: StandIn, tmp_path: Path
) -> None:
    tray, answers, gave_up = Tray(tmp_path), threading.Event(), threading.Event()

    def opens() -> Ledger:
        answers.wait(30)
        gave_up.set()
        raise LedgerError("it did not answer")

    async with station_of(standin, tmp_path) as station:
        station.ledger = AsyncLedger(opens)
        began = asyncio.Event()
        running = asyncio.create_task(provision(station, tray, 1, lambda *_: began.set()))
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        station.ledger.close()
        assert not gave_up.is_set()
        answers.set()


async def test_a_run_that_is_stopped_does_not_wait_for_who_reads_the_ledger(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_ledger, "_STOP_PATIENCE_S", 0.0)
    tray, reads = Tray(tmp_path), asyncio.Event()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as reader:

        def read(_: BoardLocation, step: ProvisioningStep) -> None:
            if step is ProvisioningStep.KEY:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM boards").fetchall()
                reads.set()

        async with station_of(standin, tmp_path) as station:
            running = asyncio.create_task(provision(station, tray, 1, read))
            await reads.wait()
            running.cancel()
            # A board that works waits for ten minutes.
            ended, _ = await asyncio.wait({running}, timeout=30)
            reader.execute("COMMIT")
            assert ended
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert outcome.outcome == "done"


async def test_once_a_stop_broke_off_a_wait_nothing_that_follows_waits_as_long_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(async_ledger, "_STOP_PATIENCE_S", 0.01)
    broken = threading.Event()
    silent: Any = SimpleNamespace(patience_s=NEVER_S, abort=broken.set, close=lambda: None)
    silent.stop_waiting = lambda patience_s: setattr(silent, "patience_s", patience_s)
    ledger = AsyncLedger(lambda: silent)
    await ledger.opened()
    waiting = asyncio.create_task(ledger.call(lambda _: broken.wait(NEVER_S)))
    await asyncio.sleep(0)
    ledger.stop_waiting()
    await waiting
    ledger.close()
    assert silent.patience_s == 0


async def test_a_ledger_that_cannot_be_opened_ends_the_run_before_a_write(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = AskedTray(tmp_path, tmp_path / "none.sqlite")
    tray.ledger.write_text("no ledger")
    async with station_of(standin, tmp_path) as station:
        station.ledger = AsyncLedger(tray.opens)
        with pytest.raises(LedgerError, match="cannot be opened"):
            await provision(station, tray, 2)
        station.ledger.close()
    assert not any(board.modem.kit.saved.credentials for board in tray.transports.values())


async def test_a_ledger_that_does_not_answer_in_its_time_is_broken_off() -> None:
    broken = threading.Event()
    silent: Any = SimpleNamespace(patience_s=0.0, abort=broken.set, close=lambda: None)
    ledger = AsyncLedger(lambda: silent)
    with pytest.raises(DatabaseFailed, match="did not answer within 0 s"):
        await ledger.call(lambda _: broken.wait(NEVER_S))
    is_broken = broken.is_set()
    broken.set()
    ledger.close()
    assert is_broken


async def test_a_wait_that_is_broken_off_prints_no_failure_of_what_went_on(tmp_path: Path) -> None:
    printed: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
    free = threading.Event()

    def fails(*_: object) -> Ledger:
        free.wait(30)
        raise LedgerError("the ledger cannot be opened")

    unopened, open_one = AsyncLedger(fails), AsyncLedger(lambda: opened(f"{tmp_path}/a.sqlite"))
    await open_one.opened()
    waiting = [asyncio.create_task(unopened.opened()), asyncio.create_task(open_one.call(fails))]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    free.set()
    unopened.close()
    open_one.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the failures reach the loop
    del waiting, task, unopened, open_one
    gc.collect()
    assert printed == []


async def test_the_notes_of_boards_that_wait_share_a_round_trip(database: str) -> None:
    with far_database(database) as far:
        async with ledger_of(far.url) as ledger:
            runs = [await claimed(ledger, uuid) for uuid in (UUID, OTHER, THIRD)]
            before = far.trips
            async with one_message(ledger):
                begun = [
                    asyncio.create_task(run.begin(ProvisioningStep.KEY, "10", writes=1))
                    for run in runs
                ]
                await asyncio.sleep(0)
            await asyncio.gather(*begun)
            assert far.trips - before == 1
            for uuid in (UUID, OTHER, THIRD):
                assert await steps(ledger, uuid) == [("key", "begun")]


async def test_a_message_waits_for_the_other_boards_at_work_and_for_nobody_once_they_are_gone(
    database: str,
) -> None:
    waits = threading.Event()

    def pause(_: float) -> float:
        waits.set()
        return NEVER_S

    with far_database(database) as far:
        async with ledger_of(far.url, pause_after_s=pause) as ledger:
            first, other = [await claimed(ledger, uuid) for uuid in (UUID, OTHER)]
            before = far.trips
            waits.clear()
            begun = asyncio.create_task(first.begin(ProvisioningStep.KEY, "10", writes=1))
            assert await asyncio.to_thread(waits.wait, 30)
            await other.begin(ProvisioningStep.KEY, "10", writes=1)
            await begun
            assert far.trips - before == 1
            await asyncio.gather(other.conclude(END), first.conclude(END))
            assert far.trips - before == 2
            last = await claimed(ledger, THIRD)
            await last.begin(ProvisioningStep.KEY, "10", writes=1)


async def test_what_was_done_goes_alone_once_its_time_is_over(address: str) -> None:
    async with ledger_of(address, alone_after_s=0.0) as ledger:
        await ledger.change(lambda to: to.lock(run_of()))
        await ledger.change(lambda to: to.begin_run(run_of()))
        await asyncio.wrap_future(ledger.note(lambda to: to.finish(UUID, "limits")))


async def test_a_refusal_among_shared_changes_touches_its_board_alone(address: str) -> None:
    async with ledger_of(address) as ledger:
        first = await claimed(ledger, UUID)
        taken = run_of(OTHER)
        await ledger.call(lambda to: to.record_run(taken))
        await ledger.change(lambda to: to.lock(taken))
        async with one_message(ledger):
            locked = asyncio.create_task(ledger.change(lambda to: to.lock(run_of(THIRD))))
            begun = asyncio.create_task(first.begin(ProvisioningStep.KEY, "10"))
            refused = asyncio.create_task(ledger.change(lambda to: to.begin_run(taken)))
            await asyncio.sleep(0)
        with pytest.raises(DatabaseFailed, match=r"(?i)unique"):  # there is a run of this id
            await refused
        await begun
        assert await steps(ledger, UUID) == [("key", "begun")]
        assert await ledger.call(lambda to: to.board(OTHER)) is None
        # Its lock was taken twice, in vain and alone, and is held once.
        await locked
        await ledger.change(lambda to: to.release(THIRD))
        if "://" in address:
            other = opened(address, "two")
            other.claim(run_of(THIRD))
            other.close()


async def test_a_busy_board_among_shared_claims_is_told_and_the_others_are_claimed(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = opened(database, "two")
    other.claim(run_of(OTHER))
    async with ledger_of(database) as ledger:
        async with one_message(ledger):
            claims = [asyncio.create_task(claimed(ledger, uuid)) for uuid in (UUID, OTHER, THIRD)]
            await asyncio.sleep(0)
        first, busy, third = await asyncio.gather(*claims, return_exceptions=True)
        assert isinstance(busy, BoardBusy)
        assert "at station two" in str(busy)
        other.release(OTHER)
        other.close()
        for run in (first, third):
            assert isinstance(run, BoardLedger)
            await run.begin(ProvisioningStep.KEY, "10", writes=1)
        # Nothing of the refused claim is held: neither the board, nor a lock.
        another = opened(database, "three")
        another.claim(run_of(OTHER))
        # Each board is locked once: what was locked in the message that failed is no second time.
        await ledger.call(lambda to: to.release(UUID))
        another.claim(run_of(UUID))
        another.close()
    assert not caplog.records


async def test_two_stations_bind_one_label_and_one_of_them_is_told_so(database: str) -> None:
    """The second finds it free, and waits for the first: refused, it looks again."""
    import psycopg

    async with ledger_of(database) as ledger:
        await claimed(ledger, UUID)
        await claimed(ledger, OTHER)
        with psycopg.connect(database) as first:
            first.execute("UPDATE boards SET label = 'L1' WHERE uuid = %s", (OTHER,))
            binding = asyncio.create_task(
                ledger.change(lambda to: to.bind_label(UUID, "L1", replaces=False))
            )
            await asyncio.to_thread(_wait_for_a_lock, database)
        with pytest.raises(LabelTaken, match=OTHER):
            await binding


def _wait_for_a_lock(database: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True) as looking:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while looking.execute(query).fetchone() == (0,):
            pass


async def test_a_station_that_finds_a_board_busy_takes_no_device_id(database: str) -> None:
    first, second = opened(database), opened(database, "two")
    first.claim(run_of())
    with pytest.raises(BoardBusy, match="station one"):
        second.lock(run_of(device_id="nrf-1"))()
    first.claim(run_of(OTHER, device_id="nrf-1"))
    first.close()
    second.close()


@pytest.mark.parametrize("trip", range(1, 7))
async def test_a_connection_that_is_lost_at_any_trip_leaves_what_a_rerun_ends(
    standin: StandIn, tmp_path: Path, database: str, trip: int
) -> None:
    with far_database(database) as far:
        tray = Tray(tmp_path)
        async with station_of(standin, tmp_path, address=far.url) as station:
            station.ledger._alone_after_s = NEVER_S
            far.cut_at = far.trips + trip
            [lost] = await provision(station, tray, 1)
            assert lost.outcome == ("failed" if reached(far) else "done")
        await asyncio.to_thread(until_free, database)
        async with station_of(standin, tmp_path, address=far.url) as station:
            [again] = await provision(station, tray, 1)
            [last] = await provision(station, tray, 1)
    assert again.ok, again
    assert (last.outcome, last.writes) == ("unchanged", 0)


def reached(far: FarDatabase) -> bool:
    return far.trips >= far.cut_at
