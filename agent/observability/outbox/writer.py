"""One thread that owns the connection, and commits everything that waits in one sync.

Whoever calls waits until the transaction that holds its work is on disk: while one commit syncs,
the next callers gather, and share the one after it.
"""

from __future__ import annotations

import sqlite3
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from agent.errors import AgentError
from agent.observability.outbox.items import OutboxFull

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from agent.observability.outbox.store import Store

T = TypeVar("T")

MOST_AT_ONCE = 512
"""Calls that share one commit: what a failed one costs all of them is bounded."""


class Work:
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


def _finish(batch: list[Work]) -> None:
    """Tell the callers that their work is on disk, or failed; wake each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[Work]] = {}
    for work in batch:
        if work.loop is None:
            work.landed.release()
        else:
            loops.setdefault(work.loop, []).append(work)
    for loop, works in loops.items():
        try:
            loop.call_soon_threadsafe(settle, works)
        except RuntimeError:
            continue  # the loop is closed: nobody waits any more


def settle(works: list[Work]) -> None:
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
        self._queue: SimpleQueue[list[Work] | None] = SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="outbox", daemon=True)
        self._thread.start()

    def hand_in(self, works: list[Work]) -> None:
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
            while len(batch) < MOST_AT_ONCE and not self._queue.empty():
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

    def _commit(self, batch: list[Work]) -> None:
        try:
            self._transaction(batch)
        except Exception as exc:  # noqa: BLE001 - the thread serves others; the caller gets it
            if len(batch) == 1:
                batch[0].error = _ours(exc) if isinstance(exc, sqlite3.Error) else exc
                return
            # Only whose work is at fault shall fail.
            for work in batch:
                self._commit([work])

    def _transaction(self, batch: list[Work]) -> None:
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
