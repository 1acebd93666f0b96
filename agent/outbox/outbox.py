"""The outbox: one folder, one process, one transaction at a time; callers wait for the sync."""

import asyncio
import logging
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Generic, Self, TypeVar

from agent.config.profile import OutboxSettings
from agent.errors import AgentError
from agent.files.private_files import make_private_folder
from agent.files.trusted_places import UntrustedPlace
from agent.outbox.items import NewItem, OutboxHeld, Receipt, outbox_error
from agent.outbox.store import Store
from at.ports.process_lock import HeldByAnother, ProcessLock
from at.protocol.counts import counted

_log = logging.getLogger(__name__)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MAX_CALLS_PER_COMMIT = 512
"""Calls that share one commit: what a failed one costs all of them is bounded."""


class StoreCall(Generic[T_co]):
    """One call: an action on the store, and its result or error; in an event loop its `future`."""

    def __init__(
        self, action: Callable[[Store], T_co], future: asyncio.Future[None] | None = None
    ) -> None:
        self._action = action
        self._results: list[T_co] = []  # two where the transaction was tried again
        self.error: Exception | None = None
        self.future = future

    def run(self, store: Store) -> None:
        """Run the action. An AgentError is kept for the caller; any other is raised: a rollback."""
        self.error = None
        try:
            self._results.append(self._action(store))
        except AgentError as exc:
            self.error = exc

    def result(self) -> T_co:
        """Return the result. Raises the error."""
        if self.error is not None:
            raise self.error
        return self._results[-1]


def resolve(loop: asyncio.AbstractEventLoop, calls: Sequence[StoreCall[object]]) -> None:
    """Wake the tasks of this event loop, in which it is called, that wait for `calls`."""
    for call in calls:
        future = call.future
        if future and future.get_loop() is loop and not future.done():  # done: it was cancelled
            future.set_result(None)


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def since_boot() -> float:
    """Return seconds since boot, which nobody sets; with those of sleep where they are known."""
    if sys.platform == "win32" or _BOOT_CLOCK is None:
        return time.monotonic()
    return time.clock_gettime(_BOOT_CLOCK)


def boot_name() -> str:
    """Return what this boot of the host is known by; a name of its own where the host has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return uuid.uuid4().hex


_LOCK = "outbox.sqlite.lock"
"""Versions with the format before lock it, too."""


class Outbox:
    """A durable queue of items to deliver, in `folder` (made 0700; its files are 0600).

    `put` and `aput` return once their items are on disk, synced. Raises OutboxHeld while another
    process has the folder, UntrustedPlace when others could change what is in it, AgentError when
    it cannot be written. `damage` says what was found damaged and has not been told before; None if
    nothing was. Every item whose own bytes are whole is kept.
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
        self.folder = folder
        self._clock = clock
        self._since_boot = since_boot
        self._boot = boot or boot_name()
        self._held, self._store = self._open(lambda: Store(folder, limits))
        self.damage = self._store.index.damage
        self.taking_over = threading.Lock()
        """Held by the thread that adds what other processes handed off."""
        self._using = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "outbox")
        self._pending: deque[StoreCall[object]] = deque()
        self._closed = False
        self._is_stale = False

    def _open(self, load: Callable[[], Store]) -> tuple[ProcessLock, Store]:
        """Make the folder, lock it, and load what is in it."""
        folder = self.folder
        try:
            make_private_folder(folder)
            lock = ProcessLock(folder / _LOCK)
        except HeldByAnother as held:
            raise OutboxHeld(
                f"the outbox in {folder} is {held}",
                hint="it is the running agent's: ask it with `cellagent status`, or stop it first",
            ) from held
        except OSError as exc:
            raise AgentError(f"{folder}: {exc.strerror}") from exc
        try:
            return lock, load()
        except (OSError, UntrustedPlace) as exc:
            lock.release()
            if isinstance(exc, UntrustedPlace):
                raise
            raise AgentError(f"the outbox in {folder} cannot be opened: {exc}") from exc

    def _open_anew(self) -> None:
        """Go on in the folder that is there now: ours was removed, with what waited in it."""
        lock, store = self._open(self._store.anew)
        lost = len(self._store.index.entries)
        _log.warning("%s was removed, and %s with it", self.folder, counted(lost, "items"))
        self._store.index.files.close()
        self._held.release()
        self._held, self._store = lock, store
        self._transaction([StoreCall(lambda store: store.index.count("unreadable", lost))])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish what was submitted, then release the folder to other processes."""
        self._thread.shutdown()
        self._run_pending()
        with self._using:
            if not self._closed:
                self._closed = True
                if self._is_stale:  # what it says of the items is not what is on the disk
                    self._store.index.files.close()
                else:
                    self._store.close()
                self._held.release()

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
        # The clock is read here, in the transaction: no item is added with a time that was read
        # before a step that the stored times have followed already.
        now = self._clock()
        store.follow_clock(self._boot, now - self._since_boot())
        return store.add(items, now)

    def transact(self, action: Callable[[Store], T]) -> T:
        """Run `action` in a transaction; return its result once that is on disk."""
        call = StoreCall(action)
        self._pending.append(call)
        self._run_pending()  # handing it to the thread costs as much as the sync of a fast disk
        return call.result()

    def submit(self, action: Callable[[Store], object]) -> None:
        """Run `action` in a transaction without waiting for it; `close` waits for it."""
        self._submit(StoreCall(action))

    async def atransact(self, action: Callable[[Store], T]) -> T:
        """Run `action` as `transact` does, without blocking the event loop.

        If the caller is cancelled, `action` still runs.
        """
        call = StoreCall(action, asyncio.get_running_loop().create_future())
        assert call.future is not None
        self._submit(call)
        await call.future
        return call.result()

    def _submit(self, call: StoreCall[object]) -> None:
        """Leave a call to the thread, which runs it after all that were made before."""
        self._pending.append(call)
        if len(self._pending) == 1:  # else whoever runs the first one runs this one, too
            try:
                self._thread.submit(self._run_pending)
            except RuntimeError:  # it is closed: the call is told so
                self._run_pending()

    def _run_pending(self) -> None:
        """Run what is pending: calls that come together share a commit."""
        with self._using:
            while self._pending:
                calls = [self._pending.popleft()]
                while self._pending and len(calls) < MAX_CALLS_PER_COMMIT:
                    calls.append(self._pending.popleft())
                self._commit(calls)
                for loop in {call.future.get_loop() for call in calls if call.future}:
                    with suppress(RuntimeError):  # it is closed: nobody waits any more
                        loop.call_soon_threadsafe(resolve, loop, calls)

    def _commit(self, calls: Sequence[StoreCall[object]]) -> None:
        try:
            self._transaction(calls)
        except Exception as exc:  # noqa: BLE001 - the caller at fault gets it
            if len(calls) == 1:
                told = outbox_error(exc, self.folder) if isinstance(exc, OSError) else exc
                calls[0].error = told
                return
            # Only the call at fault shall fail: each is tried alone.
            for call in calls:
                self._commit([call])

    def _transaction(self, calls: Sequence[StoreCall[object]]) -> None:
        if self._closed:
            raise AgentError("the outbox is closed")
        if self._held.is_replaced():
            self._open_anew()
        if self._is_stale:
            self._reload()
        try:
            self._store.index.begin()
            for call in calls:
                call.run(self._store)
            self._store.index.commit()
        except Exception:
            self._reload()
            raise

    def _reload(self) -> None:
        self._is_stale = True  # until it could be read: nothing is written meanwhile
        self._store.reload()
        self._is_stale = False
