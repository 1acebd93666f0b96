"""An event loop whose clock jumps to the next timer whenever nothing else is left to do."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """It never waits for a file descriptor; what is given to a thread is done at once, here."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self._now = 0.0
        self._clock_resolution = 1e-6  # the seconds of a year are floats with no finer steps

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            done.set_exception(error)
        return done


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will ever come")
        self._loop.advance(timeout)
        return super().select(0)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
