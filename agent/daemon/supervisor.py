"""Restarts the task of a concern when it fails, with back-off, under the concern's log context."""

import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar

from agent.daemon.snapshot import ConcernStatus
from agent.daemon.status import THE_LINK, AgentEventKind, Concern
from agent.errors import AgentError, NotConfigured
from agent.retry import backoff_s, wait_asked_s
from agent.tasks import WaitForEvent, wait_for_event
from at.protocol.errors import AtError, LinkLost, PortError

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
PORT_AWAY_S = 1.0
"""Between two tries to open a lost port: a kit that is plugged in again is found at once."""

_kit: ContextVar[str] = ContextVar("kit", default="")
_concern: ContextVar[str] = ContextVar("concern", default="")
_log = logging.getLogger(__name__)


async def supervise(
    concern: Concern[ConcernStatus],
    work: Callable[[], Awaitable[None]],
    *,
    longest_s: float = LONGEST_WAIT_S,
    wait: WaitForEvent = wait_for_event,
    jitter: Callable[[], float] = random.random,
) -> None:
    """Run `work` again and again until it returns. Success is for `work` to record.

    What has to be set in the profile first is off until a reload, which begins it anew.
    """
    with log_context(concern.kit, concern.name):
        while True:
            concern.begin_try()
            away, asked_s = False, 0.0
            try:
                await work()
            except LinkLost as error:
                # The link is a concern of its own, and reports it.
                away = True
                if concern.name == "link":
                    concern.record_failure(error)
                else:
                    concern.set_waiting(THE_LINK)
                    concern.status.failures += 1
            except NotConfigured as error:
                concern.set_off(str(error), error.hint)
                return
            except (AgentError, AtError, OSError) as error:
                away = isinstance(error, PortError)
                asked_s = wait_asked_s(error)
                concern.record_failure(error)
            except Exception as error:  # noqa: BLE001 - one concern's defect must not end the others
                if concern.record_failure(_Defect(f"a defect of cellagent: {error!r}")):
                    text = f"the task {concern.name} is restarted after a defect: {error!r}"
                    concern.publish(AgentEventKind.WATCHDOG, text)
                _log.debug("%s", concern.name, exc_info=True)
            else:
                return
            seconds = backoff_s(
                concern.status.failures,
                first_s=FIRST_WAIT_S,
                longest_s=min(longest_s, PORT_AWAY_S) if away else longest_s,
                jitter=jitter(),
                at_least_s=asked_s,
            )
            concern.set_next_try(seconds)
            await wait(concern.wake, seconds)


class _Defect(AgentError):
    def __init__(self, message: str) -> None:
        super().__init__(message, hint="please report it, with the output of `cellagent run -vv`")


@contextlib.contextmanager
def log_context(kit: str, concern: str) -> Iterator[None]:
    """Attribute every log record of the block, by whichever module, to a kit and a concern."""
    kit_before, concern_before = _kit.set(kit), _concern.set(concern)
    try:
        yield
    finally:
        _concern.reset(concern_before)
        _kit.reset(kit_before)


def add_log_context(record: logging.LogRecord) -> bool:
    """Set `kit` and `concern` of a record that does not name them itself; a logging filter."""
    record.kit = getattr(record, "kit", None) or _kit.get()
    record.concern = getattr(record, "concern", None) or _concern.get()
    return True
