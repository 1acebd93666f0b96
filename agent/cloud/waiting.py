"""Waiting for what the device cloud does in its own time, and what it says went wrong then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from agent.errors import AgentError, DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.http import Wire

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 5.0
_LARGEST = 1024 * 1024  # bytes of the errors of a bulk request
_MOST_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Poll:
    """Looks again and again, each time after a longer pause."""

    sleep: Callable[[float], Awaitable[None]]
    monotonic: Callable[[], float]

    async def until(
        self, look: Callable[[], Awaitable[tuple[bool, T]]], what: str, deadline_s: float
    ) -> T:
        """Return what was found once `look` says that it is so; the first look is at once.

        Raises DeadlineExceeded, which says `what` did not come about.
        """
        started = self.monotonic()
        pause = _FIRST_PAUSE_S
        while True:
            done, found = await look()
            if done:
                return found
            left = started + deadline_s - self.monotonic()
            if left <= 0:
                raise DeadlineExceeded(f"{what} within {deadline_s:g} s")
            await self.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)


async def row_errors(wire: Wire, url: str | None) -> str:
    """Return what was wrong with which row of a bulk request, from the file that it names."""
    if url is None:
        return ""
    try:
        # A signed address somewhere else: no credential goes there.
        answer = await wire.exchange("GET", url, headers={}, max_bytes=_LARGEST)
        errors = answer.json()["errors"] if answer.status == 200 else []
        return "; ".join(map(str, errors[:_MOST_ERRORS])) or f"see {url}"
    except (AgentError, KeyError, TypeError):
        return f"see {url}"
