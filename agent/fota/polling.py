"""Polls for jobs: at an interval with jitter, and not in quiet hours."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Protocol

from agent.errors import AgentError, BadAnswer, NotConfigured, Untrusted
from agent.fota.clock import AsyncClock
from agent.fota.journal import JobResult, JobsHeld
from agent.retry import spread_s, wait_asked_s
from at.protocol.errors import AtError, ModemReset, ParseError

SOON_S = 60.0
"""Until the next poll after one that another server answered, as of a network that wants a log-in
first, that another process had the jobs of, or that a restart of the kit or a damaged line broke
off: none lasts for an interval."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Local time without updates; may run over midnight."""

    start: time
    end: time

    def seconds_left(self, now: datetime) -> float:
        """Return the seconds until the quiet hours end, 0 outside them. `now` is local time."""
        at = now.time()
        if self.start <= self.end:
            quiet = self.start <= at < self.end
        else:
            quiet = at >= self.start or at < self.end
        if not quiet:
            return 0.0
        end = now.replace(hour=self.end.hour, minute=self.end.minute, second=0, microsecond=0)
        if end <= now:
            end += timedelta(days=1)
        return (end - now).total_seconds()


def parse_quiet_hours(text: str) -> QuietHours | None:
    """Read "22:00-6:00", as the profile takes it; None for ""."""
    if not text:
        return None
    start, end = (time.fromisoformat(clock.zfill(5)) for clock in text.split("-"))
    return QuietHours(start, end)


def seconds_to_next_poll(
    now: datetime,
    *,
    interval_s: float,
    quiet: QuietHours | None,
    jitter: float,
    asked_s: float = 0.0,
) -> float:
    """Return the seconds until the next poll: never earlier than the service asked for.

    `now` is local time; `jitter` is in 0..1.
    """
    spread = spread_s(interval_s, jitter)
    wait = max(interval_s + spread, asked_s)
    if quiet is None:
        return wait
    rest = quiet.seconds_left(now + timedelta(seconds=wait))
    # The fleet must not come all at once when the quiet hours end either.
    return wait + rest + (spread if rest else 0.0)


class PollObserver(Protocol):
    """Observes how each poll ends."""

    def result(self, result: JobResult | None) -> None:
        """Handle the result of a job that ended; None where there was no job."""

    def failed(self, error: Exception) -> None:
        """Handle the failure of a poll; the next poll comes all the same."""


async def poll_jobs(
    pull: Callable[[], Awaitable[JobResult | None]],
    observer: PollObserver,
    *,
    interval_s: float,
    quiet: QuietHours | None,
    clock: AsyncClock,
    jitter: Callable[[], float],
) -> None:
    """Pull now, then at the interval, and at once after a job, since more may be queued.

    Nothing is begun in quiet hours. Ends by being cancelled; raises NotConfigured.
    """
    while True:
        # Also after a sleep, which may have ended early.
        while quiet and (rest := quiet.seconds_left(clock.now().astimezone())):
            await clock.sleep(rest)
        interval, asked_s = interval_s, 0.0
        try:
            result = await pull()
        except NotConfigured:
            raise
        except (AgentError, AtError) as error:
            observer.failed(error)
            asked_s = wait_asked_s(error)
            if isinstance(error, BadAnswer | Untrusted | JobsHeld | ModemReset | ParseError):
                interval = min(interval_s, SOON_S)
        else:
            observer.result(result)
            if result is not None:
                interval = min(interval_s, 1.0)
        await clock.sleep(
            seconds_to_next_poll(
                clock.now().astimezone(),
                interval_s=interval,
                quiet=quiet,
                jitter=jitter(),
                asked_s=asked_s,
            )
        )
