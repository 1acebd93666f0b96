"""The outbox: one file, one connection, one thread that writes; callers wait for the sync."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self, TypeVar

from agent.config.private_files import make_private_folder
from agent.config.profile import OutboxSettings
from agent.config.trusted_places import UntrustedPlace
from agent.errors import AgentError
from agent.outbox.items import NewItem, OutboxFull, OutboxHeld, Receipt
from agent.outbox.salvage import open_file
from agent.outbox.store import Store
from at.ports.process_lock import HeldByAnother, ProcessLock

T = TypeVar("T")

MAX_CALLS_PER_COMMIT = 512
"""Calls that share one commit: what a failed one costs all of them is bounded."""


class StoreCall:
    """One call: an action on the store, and its error.

    Its caller waits for the lock `committed`, or in the event loop `loop` for `future`.
    """

    __slots__ = ("action", "committed", "error", "future", "loop")

    def __init__(
        self, action: Callable[[Store], object], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.action = action
        self.error: Exception | None = None
        self.loop = loop
        self.future: asyncio.Future[None] | None = None
        if loop is not None:
            self.future = loop.create_future()
            return
        self.committed = threading.Lock()
        self.committed.acquire()

    def run(self, store: Store) -> None:
        """Run the action. An AgentError is kept for the caller; any other is raised: a rollback."""
        self.error = None
        try:
            self.action(store)
        except AgentError as exc:
            self.error = exc


def _finish(batch: list[StoreCall]) -> None:
    """Wake the callers: their calls are on disk, or failed. Each event loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[StoreCall]] = {}
    for call in batch:
        if call.loop is None:
            call.committed.release()
        else:
            loops.setdefault(call.loop, []).append(call)
    for loop, calls in loops.items():
        try:
            loop.call_soon_threadsafe(resolve, calls)
        except RuntimeError:
            continue  # the loop is closed: nobody waits any more


def resolve(calls: list[StoreCall]) -> None:
    """Set the results and errors of the waiting tasks; called in the event loop."""
    for call in calls:
        if call.future is None or call.future.done():
            continue  # cancelled
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(None)


class Writer:
    """The thread that writes: the one user of the connection and of the store."""

    def __init__(self, connection: sqlite3.Connection, store: Store) -> None:
        self._db = connection
        self._store = store
        self._queue: SimpleQueue[list[StoreCall] | None] = SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="outbox", daemon=True)
        self._thread.start()

    def submit(self, calls: list[StoreCall]) -> None:
        """Queue `calls`, in order. Raises AgentError once closed."""
        with self._closing:
            if self._closed:
                raise AgentError("the outbox is closed")
            self._queue.put(calls)

    def close(self) -> None:
        """Finish what was submitted before, then close the connection."""
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
                calls = self._queue.get()
                if calls is None:
                    last = True
                    break
                batch = batch + calls
            self._commit(batch)
            _finish(batch)
        # The pages of deleted items, such as large dumps, go back to the disk.
        self._db.execute("PRAGMA incremental_vacuum").fetchall()
        self._db.close()

    def _commit(self, batch: list[StoreCall]) -> None:
        try:
            self._transaction(batch)
        except Exception as exc:  # noqa: BLE001 - the thread serves others; the caller gets it
            if len(batch) == 1:
                batch[0].error = _agent_error(exc) if isinstance(exc, sqlite3.Error) else exc
                return
            # Only the call at fault shall fail: each is tried alone.
            for call in batch:
                self._commit([call])

    def _transaction(self, batch: list[StoreCall]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._store.begin()
            for call in batch:
                call.run(self._store)
            self._store.flush()
            self._db.execute("COMMIT")
        except Exception:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._store.reload()
            raise


def _agent_error(error: sqlite3.Error) -> AgentError:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return OutboxFull("the disk is full", hint="free some space: nothing was taken")
    return AgentError(f"the outbox cannot be written: {error}")


def since_boot() -> float:
    """Return seconds since boot, which nobody sets; with those of sleep where they are known."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


def boot_name() -> str:
    """Return what this boot of the host is known by; a name of its own where the host has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return uuid.uuid4().hex


FILE = "outbox.sqlite"


class Outbox:
    """A durable queue of items to deliver, in `folder` (made 0700; its files are 0600).

    `put` and `aput` return once their items are on disk, synced. Raises OutboxHeld while another
    process has the folder, UntrustedPlace when others could change what is in it, AgentError when
    it cannot be written. A damaged file is set aside and salvaged; `salvaged` then says how many
    items were read from it, else it is None.
    """

    def __init__(
        self,
        folder: Path,
        limits: OutboxSettings,
        *,
        clock: Callable[[], float] = time.time,
        since_boot: Callable[[], float] = since_boot,
        boot: str = "",
    ) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._since_boot = since_boot
        self._boot = boot or boot_name()
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
        except UntrustedPlace:
            self._lock.release()
            raise
        self.salvaged = None if salvaged < 0 else salvaged
        self._writer = Writer(connection, store)
        self._gathered: list[StoreCall] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        if self.salvaged is not None:
            counts = {"damaged_files": 1, "salvaged": self.salvaged}
            self.submit(lambda store: store.add_counts(counts))

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
        """Finish what was submitted, then release the folder to other processes."""
        self._writer.close()
        self._lock.release()

    def set_limits(self, limits: OutboxSettings) -> None:
        """Apply other limits from the next item on."""
        self.submit(lambda store: store.set_limits(limits))

    def put(self, items: Sequence[NewItem]) -> Receipt:
        """Add `items`, all or none; wait for the sync. Raises OutboxFull, AgentError."""
        return self.transact(lambda store: self._add(store, items))

    async def aput(self, items: Sequence[NewItem]) -> Receipt:
        """Add `items` as `put` does, without blocking the event loop."""
        return await self.atransact(lambda store: self._add(store, items))

    def _add(self, store: Store, items: Sequence[NewItem]) -> Receipt:
        # The clock is read here, by the one thread that writes: no item is added with a time that
        # was read before a step that the stored times have followed already.
        now = self._clock()
        store.follow_clock(self._boot, now - self._since_boot())
        return store.add(items, now)

    def transact(self, action: Callable[[Store], T]) -> T:
        """Run `action` in a transaction; return its result once that is on disk."""
        results: list[T] = []  # two where the transaction was tried again
        call = StoreCall(lambda store: results.append(action(store)))
        self._writer.submit([call])
        call.committed.acquire()
        if call.error is not None:
            raise call.error
        return results[-1]

    def submit(self, action: Callable[[Store], object]) -> None:
        """Run `action` in a transaction without waiting for it; `close` waits for it.

        In an event loop it runs after all that was passed to `atransact` there before.
        """
        self._submit_gathered()
        self._writer.submit([StoreCall(action)])

    async def atransact(self, action: Callable[[Store], T]) -> T:
        """Run `action` as `transact` does, without blocking the event loop.

        If the caller is cancelled, `action` still runs.
        """
        loop = asyncio.get_running_loop()
        results: list[T] = []
        call = StoreCall(lambda store: results.append(action(store)), loop)
        assert call.future is not None
        if self._loop is not None and self._loop.is_closed():
            self._submit_gathered()  # of an earlier loop, which ended before it did this
        if not self._gathered:
            self._loop = loop
            loop.call_soon(self._submit_gathered)
        elif self._loop is not loop:
            raise AgentError("the outbox is used by two event loops at the same time")
        self._gathered.append(call)
        await call.future
        return results[-1]

    def _submit_gathered(self) -> None:
        """Submit together what the tasks have passed in one turn of the loop."""
        calls, self._gathered = self._gathered, []
        if not calls:
            return
        try:
            self._writer.submit(calls)
        except AgentError as error:
            for call in calls:
                call.error = error
            resolve(calls)
