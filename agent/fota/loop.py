"""The agent's own loop: pull, tell, wait, for as long as it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent.errors import AgentError, Unavailable
from agent.fota.schedule import next_look
from at.errors import AtError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.fota.download import Clock
    from agent.fota.journal import Result
    from agent.fota.schedule import QuietHours


class Told(Protocol):
    """Who hears how each look ended."""

    def result(self, result: Result | None) -> None:
        """Hear of a job that ended, or None for "no job"."""

    def trouble(self, error: Exception) -> None:
        """Hear of what stood in the way; the next look comes all the same."""


async def keep_pulling(
    pull: Callable[[], Awaitable[Result | None]],
    told: Told,
    *,
    interval_s: float,
    quiet: QuietHours | None,
    clock: Clock,
    jitter: Callable[[], float],
) -> None:
    """Pull at start, then at the interval; at once again after a job, since jobs queue.

    In quiet hours nothing is begun. Ends only by being cancelled.
    """
    rest = quiet.seconds_left(clock.now().astimezone()) if quiet else 0.0
    if rest:
        await clock.sleep(rest)
    while True:
        asked: float | None = None
        interval = interval_s
        try:
            result = await pull()
        except (AgentError, AtError) as error:
            told.trouble(error)
            asked = error.retry_after_s if isinstance(error, Unavailable) else None
        else:
            told.result(result)
            if result is not None:
                interval = min(interval_s, 1.0)
        await clock.sleep(
            next_look(
                clock.now().astimezone(),
                interval_s=interval,
                quiet=quiet,
                jitter=jitter(),
                asked_s=asked,
            )
        )
