"""The status of every concern of the agent, and the events that concerns publish.

A concern is one thing that the agent looks after, by one supervised task: a kit's link, its
console, its updates, the outbox. The same trouble is logged once, and so is its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Generic, TypeVar

import msgspec

from agent.config.hints import of_kit, pasteable
from agent.daemon.log_lines import AdviceOnce, LineLimit, differ_in_numbers_only
from agent.daemon.recent import DECISIONS, RecentMoments
from agent.daemon.snapshot import ConcernStatus, ConsoleStatus, LinkStatus, Phase, State
from agent.daemon.states import duration, row_of
from agent.errors import BadAnswer, RateLimited, ServerTrouble, Unavailable, Untrusted, with_hint
from agent.files.private_files import disk_hint
from agent.redact import redact
from agent.tasks import Changing

_log = logging.getLogger(__name__)

# A port that was lost is not found either: both count as the same trouble.
_PORT_LOST = {"link-lost", "port-not-found"}
_SERVICE_HINT = "is this host online? `cellagent config show` names the services"
_AT_FAULT = "wait: the fault is the service's own"
_TOLD_TO_WAIT = "wait: the service asks for it"
_BY_ITSELF = "; all goes on by itself"
_RELOAD = "`cellagent reload`"


class AgentEventKind(Enum):
    """A kind of event: its name for people, and its reason code at the observability service."""

    LINK_LOST = ("link lost", 0x8000)
    MODEM_RESET = ("modem reset", 0x0000)
    FOTA_SUCCEEDED = ("fota succeeded", 0x0003)
    FOTA_FAILED = ("fota failed", 0x8009)
    FOTA_REJECTED = ("fota rejected", 0x8009)
    WATCHDOG = ("watchdog", 0x8006)

    @property
    def counter(self) -> str:
        """The name under which it is counted."""
        return f"{self.name.lower()}_count"


THE_LINK = "the link to the kit"
"""What most concerns of a kit wait for."""


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """Something that happened to a kit or to the agent.

    `detail` is for a person: which job, which port, which task. Events of one kind with the same
    `key` are one event, however often they are published; "" makes each publication an event.
    """

    kind: AgentEventKind
    at: datetime
    """When it happened, aware."""
    detail: str = ""
    key: str = ""


S_co = TypeVar("S_co", bound=ConcernStatus, covariant=True)


class Concern(Generic[S_co]):
    """One concern, which keeps its status. `kit` is "" where all kits share it."""

    def __init__(self, registry: StatusRegistry, kind: type[S_co], kit: str = "") -> None:
        self.status = kind(State.WORKING, Phase.STARTING, None, None, 0, registry.now())
        """Its state and its facts; read here, changed by the methods and in `changing`."""
        self.kit = kit
        self.wake = asyncio.Event()
        """Ends a wait before the next try."""
        self.awaits_service = False
        """Whether it is in trouble because a service cannot be reached, or trusted."""
        self._is_of_service = False
        """Whether its trouble is a service's, even if another one answered in between."""
        self._service_answers = False  # since it failed because one could not be reached
        self._registry = registry
        self._kind = ""
        self._lines = LineLimit()
        self._trouble_told = False

    @property
    def name(self) -> str:
        """Its name, of which each kit has one."""
        return self.status.name

    @property
    def phase(self) -> Phase:
        """How it is doing."""
        return self.status.phase

    @property
    def port_is_lost(self) -> bool:
        """Whether its port was lost and has not been found again."""
        return self.phase is Phase.TROUBLE and self._kind in _PORT_LOST

    def record_failure(self, error: BaseException) -> bool:
        """Record a failure. Log it and return True if it differs from the current one."""
        text, kind = str(error) or repr(error), str(getattr(error, "kind", ""))
        self.status.failures += 1
        fails, told = self.phase is Phase.TROUBLE, self.status.trouble or ""
        is_told = fails and differ_in_numbers_only(text, told)
        known = is_told or (fails and {kind, self._kind} <= _PORT_LOST)
        self._kind = kind
        self._service_answers = False
        self.awaits_service = isinstance(error, Unavailable) and not _tells_to_wait(error)
        self._is_of_service = isinstance(error, Unavailable | BadAnswer)
        hint = self.pasteable(_hint_of(error))
        # What helps may be another thing by now: a kit is back under another name.
        self._set_phase(Phase.TROUBLE, told if is_told else text, hint)
        # One that came and went too often to be told is told once it stays.
        if not (known and self._trouble_told):
            self._trouble_told = self.log(logging.WARNING, with_hint(text, hint))
        return not known

    def set_well(self) -> None:
        """Record that it works; log it if it did not before."""
        ended = self.phase is Phase.TROUBLE
        self._end_failures("works again")
        self._set_phase(Phase.WELL, "", "")
        if ended and self._is_of_service:
            self._registry.service_is_back()

    def service_is_back(self) -> None:
        """Try at once, if it waits for a service: one answers again."""
        if self.awaits_service:
            self._service_answers = True
            self.wake.set()

    def begin_try(self) -> None:
        """Record that it is at work: whatever woke it so far, this try is for."""
        self.wake.clear()
        self.status.next_try = None

    def set_next_try(self, wait_s: float) -> None:
        """Record that it waits for so long, unless it is woken."""
        now = self._registry.now()
        with contextlib.suppress(OverflowError):
            self.status.next_try = now + timedelta(seconds=round(wait_s, 3))

    def set_waiting(self, what: str) -> None:
        """Record that it waits for another concern, which logs its trouble itself.

        A trouble of its own stays, but that with a service that answers again: it was tried since.
        """
        if self.phase is Phase.TROUBLE:
            if not self._service_answers:
                return
            self._end_failures("the service answers again")
        self._set_phase(Phase.WAITING, what, "")

    def end_waiting(self, what: str) -> None:
        """Record that what it waited for is there, and that it works again; it is not well yet."""
        if self.phase is Phase.WAITING and self.status.trouble == what:
            self._set_phase(Phase.STARTING, "", "")

    def _end_failures(self, how: str) -> None:
        if self.phase is Phase.TROUBLE and self._trouble_told:
            took = duration((self._registry.now() - self.status.since).total_seconds())
            tries = self.status.failures
            again = "" if tries == 1 else f", after {tries} tries"
            self._write(logging.INFO, f"{how} after {took}{again}")
        self.awaits_service = False
        self.status.failures = 0

    def set_off(self, reason: str, hint: str = "") -> None:
        """Record that it does nothing, and why; log a new reason."""
        known = self.phase is Phase.OFF and self.status.trouble == reason
        self._set_phase(Phase.OFF, reason, self.pasteable(hint))
        if not known:
            self.log(logging.INFO, f"off: {reason}")

    def pasteable(self, hint: str) -> str:
        """Return a hint whose commands can be pasted as they are: with profile, port and kit."""
        if self.kit and self._registry.has_table:
            hint = of_kit(hint, self.kit)
        return pasteable(hint, self._registry.profile, self._registry.ports.get(self.kit, ""))

    def evaluate(self) -> None:
        """Set the state by the phase, the facts and the time."""
        self.status.state = row_of(self.status, self._registry.now()).state

    @contextlib.contextmanager
    def changing(self) -> Iterator[S_co]:
        """Give the status, to set facts of it in the block."""
        yield self.status
        self.evaluate()
        self._registry.notify_changed()

    def log(self, level: int, text: str) -> bool:
        """Log a line about this concern, if it was not told too often; return whether it was."""
        now = self._registry.clock()
        line = self._lines.admit(text, now)
        if line is not None:
            self._write(level, self._registry.advice.admit(line, now))
        return line is not None

    def _write(self, level: int, text: str) -> None:
        _log.log(level, "%s", text, extra={"kit": self.kit, "concern": self.name})
        if self.kit:
            named = logging.getLevelName(level).lower()
            self._registry.recent(self.kit).add(DECISIONS, redact(f"{self.name}: {text}"), named)

    def publish(
        self, kind: AgentEventKind, detail: str, *, at: datetime | None = None, key: str = ""
    ) -> None:
        """Publish an event of this concern's kit that happened at `at` (aware), or now."""
        # Not in milliseconds: two events of one kind at one time would be taken for one.
        when = datetime.fromtimestamp(self._registry.clock(), UTC) if at is None else at
        self._registry.publish(self.kit, AgentEvent(kind, when, detail, key))

    def _set_phase(self, phase: Phase, trouble: str, hint: str) -> None:
        status = self.status
        if (phase, trouble, hint) == (status.phase, status.trouble or "", status.hint or ""):
            return
        if phase is not status.phase:
            status.since = self._registry.now()
        status.phase, status.trouble, status.hint = phase, trouble or None, hint or None
        self.evaluate()
        self._registry.notify_changed()


def _tells_to_wait(error: Unavailable) -> bool:
    return isinstance(error, RateLimited) or bool(error.retry_after_s)


def _hint_of(error: BaseException) -> str:
    """Return what helps; of a service that is away also that nobody has to do anything."""
    usual = str(getattr(error, "usual_hint", ""))
    hint = str(getattr(error, "hint", "")) or disk_hint(error.__cause__) or usual
    if not isinstance(error, Unavailable) or isinstance(error, Untrusted) or _RELOAD in hint:
        return hint
    if not hint and _tells_to_wait(error):
        hint = _TOLD_TO_WAIT
    elif not hint:
        hint = _AT_FAULT if isinstance(error, ServerTrouble) else _SERVICE_HINT
    return hint + _BY_ITSELF


class StatusRegistry(Changing):
    """All concerns, in the order in which they were added."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.clock = clock
        self.advice = AdviceOnce()
        self.concerns: list[Concern[ConcernStatus]] = []
        self.profile = ""
        self.since = self.now()
        """When the agent began, by the clock as it is now."""
        self.ports: dict[str, str] = {}
        """The port of each kit."""
        self.has_table = False
        """Whether the kits are those of the profile's table."""
        self.on_service_back: Callable[[], None] = lambda: None
        self._subscribers: dict[str, Callable[[AgentEvent], None]] = {}
        self._recent: dict[str, RecentMoments] = {}

    def recent(self, kit: str) -> RecentMoments:
        """Return what happened to a kit lately."""
        return self._recent.setdefault(kit, RecentMoments(self.clock))

    def statuses(self) -> list[tuple[str, ConcernStatus]]:
        """Return the status of each concern with its kit, "" for none."""
        return [(concern.kit, concern.status) for concern in self.concerns]

    def namesakes(self, kit: str, device_id: str) -> list[str]:
        """Return the other kits that are this device by what they say, if their links are up."""
        return [
            other.kit
            for other in self.concerns
            if isinstance(other.status, LinkStatus) and other.status.device_id == device_id
            if other.kit != kit and other.phase is Phase.WELL
        ]

    def now(self) -> datetime:
        """Return the time, in UTC, in milliseconds' steps."""
        return datetime.fromtimestamp(round(self.clock(), 3), UTC)

    def clock_was_set(self, by_s: float) -> None:
        """Move what was recorded by the clock before it was set by so many seconds."""
        step, now = timedelta(seconds=by_s), self.now()

        def moved(at: datetime) -> datetime:
            return at + step if at + step <= now else at  # else it was recorded after it was set

        self.since = moved(self.since)
        for concern in self.concerns:
            with concern.changing() as status:
                status.since = moved(status.since)
                if isinstance(status, ConsoleStatus) and (crash := status.crash) is not None:
                    status.crash = msgspec.structs.replace(crash, at=moved(crash.at))

    def service_is_back(self) -> None:
        """End every wait for a service: it took something of one concern, or answers again."""
        for concern in self.concerns:
            concern.service_is_back()
        self.on_service_back()

    def add_concern(self, kind: type[S_co], kit: str = "") -> Concern[S_co]:
        """Add a concern and return it."""
        added = Concern(self, kind, kit)
        self.concerns.append(added)
        self.notify_changed()
        return added

    def remove_kit(self, kit: str) -> None:
        """Remove the concerns of a kit and the subscriber to its events."""
        self.concerns = [concern for concern in self.concerns if concern.kit != kit]
        self._subscribers.pop(kit, None)
        self._recent.pop(kit, None)
        self.notify_changed()

    def subscribe(self, kit: str, subscriber: Callable[[AgentEvent], None]) -> None:
        """Call `subscriber` with each event of a kit and of the agent; one subscriber a kit."""
        self._subscribers[kit] = subscriber

    def publish(self, kit: str, event: AgentEvent) -> None:
        """Pass an event to the subscriber of a kit; one of the agent itself ("") to all."""
        for name, subscriber in list(self._subscribers.items()):
            if kit in {"", name}:
                subscriber(event)

    async def changed(self) -> None:
        """Wait for the next change of any concern."""
        await self.next_change.wait()
