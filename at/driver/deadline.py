"""The time for getting a link in step: a deadline, and shorter waits while the modem is mute."""

from __future__ import annotations

import asyncio
import math
from typing import TypeVar

from at.protocol.errors import CommandTimeout

T = TypeVar("T")

GRACE_S = 3.0
"""How much longer than its time a command may take whose link is out of step, but answers."""
_LEAST = 0.1  # of the usual time


class Deadline:
    """Ends in `timeout_s`; a final result that comes until then puts it off by GRACE_S, once."""

    def __init__(self, timeout_s: float = math.inf) -> None:
        self.timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + timeout_s
        self._heard = False
        self._timer: asyncio.TimerHandle | None = None

    def hear(self) -> None:
        """Note a final result: a modem that gives any is worth waiting for."""
        if not self._heard:
            self._heard = True
            self._at += GRACE_S

    def left_s(self) -> float:
        """Return the seconds that are left, 0 once it is over."""
        return max(self._at - self._loop.time(), 0.0)

    def start_waiting(
        self, waiter: asyncio.Future[T], usual_s: float, *, hurry: bool = False
    ) -> None:
        """Let `waiter` raise CommandTimeout after the usual time of an answer, from now on.

        `hurry`: if nothing was heard and little time is left, only half of it is for this answer.
        """
        self.stop_waiting()
        left_s = self.left_s()
        part = min(max(left_s / 2, _LEAST), 1.0) if hurry and not self._heard else 1.0
        self._timer = self._loop.call_later(min(usual_s * part, left_s), _give_up, waiter)

    def stop_waiting(self) -> None:
        """Let the waiter wait: it has its answer, or is gone."""
        if self._timer is not None:
            self._timer.cancel()


def _give_up(waiter: asyncio.Future[T]) -> None:
    if not waiter.done():
        waiter.set_exception(CommandTimeout("nothing came"))
