"""The outbox: one file, one connection, one thread that writes; callers wait for the sync."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from agent.config.private_files import make_private_folder
from agent.errors import AgentError
from agent.outbox.items import OutboxFull, OutboxHeld
from agent.outbox.schema import open_file
from agent.outbox.store import Store
from at.ports.process_lock import HeldByAnother, ProcessLock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from agent.config.profile import OutboxSettings as Limits
    from agent.outbox.items import NewItem, Receipt


T = TypeVar("T")

MAX_CALLS_PER_COMMIT = 512
"""Calls that share one commit: what a failed one costs all of them is bounded."""


class StoreCall:
    """One call: what to do with the store, and what came of it.

    Its caller waits on `landed`, or in the event loop `loop` on `future`.
    """

    __slots__ = ("action", "error", "future", "landed", "loop", "result")

    def __init__(
        self, action: Callable[[Store], Any], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.action = action
        self.result: Any = None
        self.error: Exception | None = None
        self.loop = loop
        self.future: asyncio.Future[Any] | None = None
        if loop is not None:
            self.future = loop.create_future()
            return
        self.landed = threading.Lock()
        self.landed.acquire()

    def run(self, store: Store) -> None:
        """Do it. An error of ours is the caller's alone; any other undoes the transaction."""
        self.error = None
        try:
            self.result = self.action(store)
        except AgentError as exc:
            self.error = exc


def _finish(batch: list[StoreCall]) -> None:
    """Tell the callers that their work is on disk, or failed; wake each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[StoreCall]] = {}
    for work in batch:
        if work.loop is None:
            work.landed.release()
        else:
            loops.setdefault(work.loop, []).append(work)
    for loop, works in loops.items():
        try:
            loop.call_soon_threadsafe(resolve, works)
        except RuntimeError:
            continue  # the loop is closed: nobody waits any more


def resolve(works: list[StoreCall]) -> None:
    """Give the waiting tasks what came of their work; in the event loop."""
    for work in works:
        if work.future is None or work.future.done():
            continue  # cancelled
        if work.error is not None:
            work.future.set_exception(work.error)
        else:
            work.future.set_result(work.result)


class Writer:
    """The thread. `close` waits for what was handed in before it."""

    def __init__(self, connection: sqlite3.Connection, store: Store) -> None:
        self._db = connection
        self._store = store
        self._queue: SimpleQueue[list[StoreCall] | None] = SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="outbox", daemon=True)
        self._thread.start()

    def hand_in(self, works: list[StoreCall]) -> None:
        """Queue `works`, in order. Raises AgentError once closed."""
        with self._closing:
            if self._closed:
                raise AgentError("the outbox is closed")
            self._queue.put(works)

    def close(self) -> None:
        """Finish what was handed in, then close the connection."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        last = False
        while not last:
            batch = self._queue.get()
            if batch is None:
                break
            while len(batch) < MAX_CALLS_PER_COMMIT and not self._queue.empty():
                works = self._queue.get()
                if works is None:
                    last = True
                    break
                batch = batch + works
            self._commit(batch)
            _finish(batch)
        # What a large dump took goes back to the disk.
        self._db.execute("PRAGMA incremental_vacuum").fetchall()
        self._db.close()

    def _commit(self, batch: list[StoreCall]) -> None:
        try:
            self._transaction(batch)
        except Exception as exc:  # noqa: BLE001 - the thread serves others; the caller gets it
            if len(batch) == 1:
                batch[0].error = _ours(exc) if isinstance(exc, sqlite3.Error) else exc
                return
            # Only whose work is at fault shall fail.
            for work in batch:
                self._commit([work])

    def _transaction(self, batch: list[StoreCall]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._store.begin()
            for work in batch:
                work.run(self._store)
            self._store.end()
            self._db.execute("COMMIT")
        except Exception:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._store.load()
            raise


def _ours(error: sqlite3.Error) -> AgentError:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return OutboxFull("the disk is full", hint="free some space: nothing was taken")
    return AgentError(f"the outbox cannot be written: {error}")


SMALLEST_STEP_S = 30.0
"""Less is drift, or a correction by the network."""


class ClockStepDetector:
    """Compares the wall clock with the monotonic one, both in seconds. Pure."""

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        self._offset_s = wall_s - monotonic_s

    def stepped(self, wall_s: float, monotonic_s: float) -> float:
        """Return by how much the clock was set since the last call, 0.0 if it was not."""
        step_s = wall_s - monotonic_s - self._offset_s
        if abs(step_s) <= SMALLEST_STEP_S:
            return 0.0
        self._offset_s += step_s
        return step_s


def since_boot() -> float:
    """Return seconds that nobody sets; those in which the host slept count where that is known."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


FILE = "outbox.sqlite"


class Outbox:
    """What waits for delivery, in `folder` (made 0700; its files are 0600).

    `put` and `aput` return once their items are on disk, synced. Raises OutboxHeld while another
    process has the folder, AgentError when it cannot be written. A damaged file is set aside and
    salvaged; `salvaged` then says how many items were read from it, else it is None.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.time,
        since_boot: Callable[[], float] = since_boot,
    ) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._since_boot = since_boot
        self._steps = ClockStepDetector(clock(), since_boot())
        try:
            make_private_folder(folder)
            self._lock = ProcessLock(folder / f"{FILE}.lock")
        except HeldByAnother as held:
            raise OutboxHeld(
                f"the outbox in {folder} is {held}",
                hint="it is the running agent's: ask it with `cellagent status`, or stop it first",
            ) from held
        except OSError as exc:
            raise AgentError(f"{folder}: {exc.strerror}") from exc
        try:
            connection, salvaged = open_file(self.path, clock())
            store = Store(connection, self.path, limits)
        except (sqlite3.Error, OSError) as exc:
            self._lock.release()
            raise AgentError(f"{self.path} cannot be opened: {exc}") from exc
        self.salvaged = None if salvaged < 0 else salvaged
        self._writer = Writer(connection, store)
        self._gathered: list[StoreCall] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        if self.salvaged is not None:
            counts = {"damaged_files": 1, "salvaged": self.salvaged}
            self.hand_in(lambda store: store.count(counts))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what was handed in, and let another process have the folder."""
        self._writer.close()
        self._lock.release()

    def limit_to(self, limits: Limits) -> None:
        """Keep to other limits from the next item on."""
        self.hand_in(lambda store: store.limit_to(limits))

    def put(self, items: Sequence[NewItem]) -> Receipt:
        """Take `items`, all or none; wait for the sync. Raises OutboxFull, AgentError."""
        now = self._now()
        return self.do(lambda store: store.take(items, now))

    async def aput(self, items: Sequence[NewItem]) -> Receipt:
        """Do as `put` without holding up the event loop."""
        now = self._now()
        return await self.ado(lambda store: store.take(items, now))

    def _now(self) -> float:
        """Return the time; after the clock was set, what came before is as old as it is."""
        now = self._clock()
        if step_s := self._steps.stepped(now, self._since_boot()):
            self.hand_in(lambda store: store.clock_was_set(step_s))
        return now

    def do(self, action: Callable[[Store], T]) -> T:
        """Run `action` in a transaction; return its result once that is on disk."""
        work = StoreCall(action)
        self._writer.hand_in([work])
        work.landed.acquire()
        if work.error is not None:
            raise work.error
        result: T = work.result
        return result

    def hand_in(self, action: Callable[[Store], object]) -> None:
        """Have `action` done without waiting for it; `close` still does.

        Called in an event loop, it comes after what was given to `ado` there before it.
        """
        self._hand_over()
        self._writer.hand_in([StoreCall(action)])

    async def ado(self, action: Callable[[Store], T]) -> T:
        """Do as `do` without holding up the event loop.

        A caller that is cancelled learns nothing; the work is done all the same.
        """
        loop = asyncio.get_running_loop()
        work = StoreCall(action, loop)
        assert work.future is not None
        if self._loop is not None and self._loop.is_closed():
            self._hand_over()  # what an earlier loop left behind when it ended
        if not self._gathered:
            self._loop = loop
            loop.call_soon(self._hand_over)
        elif self._loop is not loop:
            raise AgentError("the outbox is used by two event loops at the same time")
        self._gathered.append(work)
        result: T = await work.future
        return result

    def _hand_over(self) -> None:
        """Hand in what the tasks of one turn of the loop have gathered, as one."""
        works, self._gathered = self._gathered, []
        if not works:
            return
        try:
            self._writer.hand_in(works)
        except AgentError as error:
            for work in works:
                work.error = error
            resolve(works)
