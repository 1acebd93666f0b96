"""The ledger for many tasks: their changes go together, in one thread, one call after the other."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from agent.provisioning.ledger import Ledger
from agent.provisioning.ledger.backend import DatabaseFailed

T = TypeVar("T")
Work = Callable[[Ledger], Callable[[], T] | None]
"""Asks the database for something; returns how to know the answer once it is there."""

_CLOSE_TIMEOUT_S = 10.0
_STOP_PATIENCE_S = 5.0
_OPENING_TIMEOUT_S = 0.5


def _pause_after(took_s: float) -> float:
    """Return how long a message may wait for other boards, after one that took so long."""
    return min(took_s / 4, 0.02)


class AsyncLedger:
    """The ledger for many tasks: one call after the other, in a thread, since each is synced.

    Changes go together, in one transaction: those that came while another call was under way, and
    those for which nobody waits, which go with the next call, or alone after `alone_after_s`.
    Boards that one answer let go on ask for the next at nearly the same time: so that they share
    it, a message waits for `pause_after_s` of what the one before took, or until every claimed
    board waits for it.

    `opens` begins at once, in a thread of its own. What it raises, every call raises.
    """

    def __init__(
        self,
        opens: Callable[[], Ledger],
        alone_after_s: float = 1.0,
        pause_after_s: Callable[[float], float] = _pause_after,
    ) -> None:
        self._alone_after_s = alone_after_s
        self._pause_after_s = pause_after_s
        self._took_s = 0.0
        self._waiting = 0
        self._waiting_changed = threading.Condition()
        # One thread: a call whose task was cancelled still ends before the next one begins.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._changes: deque[tuple[Work[Any], Future[Any]]] = deque()
        self._due: asyncio.TimerHandle | None = None
        self._opening: Future[Ledger] = Future()
        self._last: Future[Any] = self._opening
        # Nobody who stops waits for a server that does not answer; what is cut off there is undone.
        threading.Thread(
            target=self._open, args=[opens], name="ledger-opening", daemon=True
        ).start()

    def _open(self, opens: Callable[[], Ledger]) -> None:
        try:
            ledger = opens()
        except BaseException as error:  # noqa: BLE001 - it is raised where the ledger is asked
            if self._opening.set_running_or_notify_cancel():
                self._opening.set_exception(error)
            return
        if self._opening.set_running_or_notify_cancel():
            self._opening.set_result(ledger)
        else:
            ledger.close()

    @property
    def is_open(self) -> bool:
        """Whether it was opened, so that a call waits for no more than its answer."""
        return self._opening.done() and self._opening.exception() is None

    async def opened(self) -> Ledger:
        """Wait until the ledger is open; return it, for its thread. Raises as `opens` does."""
        if not self._opening.done():
            await _ended(self._opening)
        return self._opening.result()

    async def call(self, work: Callable[[Ledger], T]) -> T:
        """Return the result of `work`. Raises DatabaseFailed where none comes."""
        ledger = await self.opened()
        self._go()
        call = self._last = self._thread.submit(work, ledger)
        return await self._answer(call, ledger)

    async def change(self, work: Work[T]) -> T:
        """Make a change after those that were noted; return its result, as `call`."""
        noted = self.note(work)
        return await self.kept(noted)

    def note(self, work: Work[T]) -> Future[T]:
        """Have a change made soon; `kept` waits for it."""
        result: Future[T] = Future()
        self._changes.append((work, result))
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(self._alone_after_s, self._go)
        return result

    async def kept(self, noted: Future[T]) -> T:
        """Wait until a change is on disk; return its result. Raises DatabaseFailed, as `call`."""
        ledger = await self.opened()
        await asyncio.sleep(0)  # those that go on at the same time have noted their changes then
        if not noted.done():
            self._count_waiting(1)
            noted.add_done_callback(lambda _: self._count_waiting(-1))
            self._go()
        return await self._answer(noted, ledger)

    def _count_waiting(self, more: int) -> None:
        with self._waiting_changed:
            self._waiting += more
            self._waiting_changed.notify()

    def _go(self) -> None:
        """Have the changes made that were noted."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
            self._last = self._thread.submit(self._make_changes)

    def _make_changes(self) -> None:
        if not self._changes:
            return
        ledger = self._opening.result()
        with self._waiting_changed:
            self._waiting_changed.wait_for(
                lambda: self._waiting >= ledger.claims, self._pause_after_s(self._took_s)
            )
        began = time.monotonic()
        changes = [self._changes.popleft() for _ in range(len(self._changes))]
        done = ledger.together([work for work, _ in changes])
        for (_, result), value in zip(changes, done, strict=True):
            if isinstance(value, Exception):
                result.set_exception(value)
            else:
                result.set_result(value)
        self._took_s = time.monotonic() - began

    async def _answer(self, call: Future[T], ledger: Ledger) -> T:
        patience_s = ledger.patience_s  # for the calls of all other boards as well
        try:
            async with asyncio.timeout(patience_s):
                return await _ended(call)
        except TimeoutError as error:
            ledger.abort()
            raise DatabaseFailed(f"it did not answer within {patience_s:.0f} s") from error

    def stop_waiting(self) -> None:
        """Have no call wait for long for others who use the ledger: the boards are stopped.

        What is not recorded then is found cut off, as after a kill.
        """
        if not self.is_open:
            return
        ledger = self._opening.result()
        ledger.stop_waiting(_STOP_PATIENCE_S)
        loop = asyncio.get_running_loop()
        loop.call_later(_STOP_PATIENCE_S, self._abort_unless_done, self._last)

    def _abort_unless_done(self, call: Future[Any]) -> None:
        if not call.done():
            ledger = self._opening.result()
            ledger.stop_waiting(0.0)  # nor does what the boards say at their end
            ledger.abort()

    def close(self) -> None:
        """Wait, in bounded time, for the calls that were begun; then close the ledger."""
        wait([self._opening], _OPENING_TIMEOUT_S)
        self._opening.cancel()  # then it is closed once it is open
        is_open = not self._opening.cancelled() and self._opening.exception() is None
        self._go()
        if is_open and wait([self._last], _CLOSE_TIMEOUT_S).not_done:
            self._opening.result().abort()
        self._thread.shutdown(cancel_futures=True)
        for _, result in self._changes:
            result.cancel()
        if is_open:
            self._opening.result().close()


async def _ended(call: Future[T]) -> T:
    """Wait for what the thread does, which goes on where the wait is broken off."""
    waited = asyncio.wrap_future(call)
    # Where nobody waits any more, its failure is another call's to tell: asyncio would print it.
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(waited)
