"""The time limit of the command in flight, which nearly every answer keeps: so it costs little."""

import asyncio
from collections.abc import Callable


class TimeLimit:
    """Calls back if it is not stopped in time; there is one at a time.

    The timer of the event loop runs on when the limit is stopped: to cancel it, and start another
    for each command, would take longer than to read the answer. It is set again when it is due.
    """

    def __init__(self) -> None:
        self._over: Callable[[], None] | None = None
        self._at = 0.0  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    def start(
        self, loop: asyncio.AbstractEventLoop, seconds: float, over: Callable[[], None]
    ) -> None:
        """Call `over` in `seconds`, unless it is stopped."""
        self._over, self._at = over, loop.time() + seconds
        if self._timer is None or self._timer.when() > self._at:
            self.cancel()
            self._timer = loop.call_at(self._at, self._due, loop, self._at)

    def stop(self) -> None:
        """Call nobody."""
        self._over = None

    def cancel(self) -> None:
        """Cancel the timer: nothing of it is left in the event loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self._timer, over = None, self._over
        if over is None:
            return
        if self._at > at:
            self._timer = loop.call_at(self._at, self._due, loop, self._at)
        else:
            self._over = None
            over()
