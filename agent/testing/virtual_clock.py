"""The time of an event loop on a replay: it jumps to the next timer while nothing real is awaited.

So a test that waits 60 s for a modem that says nothing takes no longer than one that does not. Real
are file descriptors but the loop's own (sockets, serial ports, child processes) and threads of its
executor: while one is awaited, time passes as it does everywhere.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def virtual_clock(
    loop: asyncio.AbstractEventLoop, is_awaited: Callable[[], bool] = lambda: True
) -> Iterator[Callable[[], bool]]:
    """Let a loop's time jump while the block runs and `is_awaited`; then it goes on from there.

    The block gets a function that returns whether a wait would take no time now.
    A loop without a selector of its own (uvloop, Windows' proactor) keeps the real time. Is called
    on the loop's thread.
    """
    if not isinstance(loop, asyncio.SelectorEventLoop):
        yield lambda: False
        return
    clock = _Clock(loop, is_awaited)
    jumping = _JumpingSelector(loop._selector, clock)  # type: ignore[attr-defined]
    loop._selector = jumping  # type: ignore[attr-defined]
    loop.time = clock.time  # type: ignore[method-assign]
    loop.run_in_executor = clock.counting(loop.run_in_executor)  # type: ignore[assignment]
    try:
        yield lambda: clock.may_jump(jumping.inner)
    finally:
        loop._selector = jumping.inner  # type: ignore[attr-defined]
        del loop.run_in_executor


class _Clock:
    """The real time and what was jumped over. The loop refers to it, not it to the loop."""

    def __init__(self, loop: asyncio.SelectorEventLoop, is_awaited: Callable[[], bool]) -> None:
        self._is_awaited = is_awaited
        self.ahead_s = loop.time() - time.monotonic()
        self._threads = 0
        self._own = set(loop._selector.get_map()) & {loop._ssock.fileno()}  # type: ignore[attr-defined]

    def time(self) -> float:
        return time.monotonic() + self.ahead_s

    def counting(self, run: Callable[..., asyncio.Future[Any]]) -> Callable[..., Any]:
        """Return `run` for threads that are counted as long as they are awaited."""

        def counted(*arguments: Any) -> asyncio.Future[Any]:
            future = run(*arguments)
            self._threads += 1
            future.add_done_callback(self._thread_ended)
            return future

        return counted

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self._threads -= 1

    def may_jump(self, selector: selectors.BaseSelector) -> bool:
        return not self._threads and self._is_awaited() and set(selector.get_map()) == self._own


class _JumpingSelector:
    """A loop's selector, which sets the clock forward in place of waiting."""

    def __init__(self, inner: selectors.BaseSelector, clock: _Clock) -> None:
        self.inner, self._clock = inner, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def select(self, timeout: float | None = None) -> list[Any]:
        if not timeout or timeout < 0 or not self._clock.may_jump(self.inner):
            return self.inner.select(timeout)
        ready = self.inner.select(0)
        if not ready:
            self._clock.ahead_s += timeout
        return ready
