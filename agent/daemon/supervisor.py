"""Keeps a concern at work: it fails and restarts on its own, later each time."""

from __future__ import annotations

import contextlib
import logging
import random
from contextvars import ContextVar
from typing import TYPE_CHECKING

from agent.daemon.own_events import Happening
from agent.errors import AgentError
from agent.tasks import WaitForEvent, wait_for_event
from at.protocol.errors import AtError, LinkLost, PortError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from agent.daemon.status import Concern


_kit: ContextVar[str] = ContextVar("kit", default="")
_concern: ContextVar[str] = ContextVar("concern", default="")


@contextlib.contextmanager
def log_context(kit: str, concern: str) -> Iterator[None]:
    """Mark what is logged within, by whomever, as being about this kit and concern."""
    kit_before, concern_before = _kit.set(kit), _concern.set(concern)
    try:
        yield
    finally:
        _concern.reset(concern_before)
        _kit.reset(kit_before)


def add_log_context(record: logging.LogRecord) -> bool:
    """Put kit and concern into a record that does not name them itself; a logging filter."""
    record.kit = getattr(record, "kit", None) or _kit.get()
    record.concern = getattr(record, "concern", None) or _concern.get()
    return True


FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
PORT_AWAY_S = 1.0
"""Between two looks for a port: a kit that is plugged in again is found at once."""

_log = logging.getLogger(__name__)


def back_off(failures: int, jitter: float, longest_s: float = LONGEST_WAIT_S) -> float:
    """Return the seconds before the next try; `jitter` (0..1) adds up to a quarter."""
    return min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 20), longest_s) * (1 + jitter / 4)


async def supervise(
    concern: Concern,
    work: Callable[[], Awaitable[None]],
    *,
    longest_s: float = LONGEST_WAIT_S,
    wait: WaitForEvent = wait_for_event,
    jitter: Callable[[], float] = random.random,
) -> None:
    """Run `work` again and again until it returns by itself. `work` says when it is well."""
    with log_context(concern.kit, concern.name):
        while True:
            concern.wake.clear()
            away = False
            try:
                await work()
            except LinkLost as error:
                # The link is a concern of its own, and tells it.
                away = True
                if concern.name == "link":
                    concern.failed(error)
                else:
                    concern.waits("the link to the kit")
                    concern.failures += 1
            except (AgentError, AtError, OSError) as error:
                away = isinstance(error, PortError)
                concern.failed(error)
            except Exception as error:  # noqa: BLE001 - one concern's defect must not end the others
                if concern.failed(_Defect(f"a defect of cellagent: {error!r}")):
                    text = f"the task {concern.name} is restarted after a defect: {error!r}"
                    concern.happened(Happening.WATCHDOG, text)
                _log.debug("%s", concern.name, exc_info=True)
            else:
                return
            most = min(longest_s, PORT_AWAY_S) if away else longest_s
            await wait(concern.wake, back_off(concern.failures, jitter(), most))


class _Defect(AgentError):
    def __init__(self, message: str) -> None:
        super().__init__(message, hint="please report it, with the output of `cellagent run -vv`")
