"""Chooses which items are sent next, and when. Pure: times are arguments.

A lane is a device and a kind. Each lane has its own back-off; a device has one request in flight,
whatever the kind, so that its chunks arrive in the order of the device.

A request that fails over and over is divided, until one message is alone in it (of chunks; an
event or a dump is one by itself). A message that fails alone is held apart, with waits of its own,
and the next one is tried. If the service takes that, it was the message; if not, it is the service:
the lane waits, then tries its oldest message again, so that little is overtaken when the service is
back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from agent.errors import RateLimited
from agent.observability.ingest.chunks import MAX_CHUNKS, MAX_CHUNKS_BYTES
from agent.observability.ingest.events import MAX_EVENTS, MAX_EVENTS_BYTES
from agent.outbox.delivery_requests import FailureKind
from agent.outbox.items import ItemKind, Lane, Selection
from agent.retry import backoff_s, wait_asked_s
from at.protocol.state_machine import Transitions

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 3600.0
_REFUSED_WAIT_S = 1.0  # between the first refusals of one message: the service answers
_BLOCKED_WAIT_S = 3600.0  # until a refused credential is tried again unasked
_UNBOUNDED = 1 << 30

LIMITS = {
    ItemKind.CHUNK: (MAX_CHUNKS, MAX_CHUNKS_BYTES),
    ItemKind.EVENT: (MAX_EVENTS, MAX_EVENTS_BYTES),
    ItemKind.COREDUMP: (1, 1 << 62),
}
"""Items and bytes of one request, unless a single item is larger."""

TRIES = {FailureKind.REFUSED: 1, FailureKind.FAULT: 3, FailureKind.AWAY: 10}
"""Failures, since the service last took something of the lane, after which it may be the items."""


class LaneState(Enum):
    """Whether a failure is an item's or the service's."""

    FLOWING = "flowing"
    """The service takes what is sent, or has not failed on one message alone."""
    PROBING = "probing"
    """A message failed alone: the next one tells whether it is the message or the service."""
    DOWN = "down"
    """Two different messages failed: the lane waits, then tries the oldest again."""


class LaneEvent(Enum):
    """What a request tells about the service."""

    TAKEN = "taken"
    FAILED = "another message failed alone"
    FAILED_AGAIN = "a message failed alone that had before, with nothing taken since"


TRANSITIONS = Transitions(
    {
        (LaneState.FLOWING, LaneEvent.TAKEN): LaneState.FLOWING,
        (LaneState.FLOWING, LaneEvent.FAILED): LaneState.PROBING,
        (LaneState.PROBING, LaneEvent.TAKEN): LaneState.FLOWING,
        (LaneState.PROBING, LaneEvent.FAILED): LaneState.DOWN,
        (LaneState.PROBING, LaneEvent.FAILED_AGAIN): LaneState.PROBING,
        (LaneState.DOWN, LaneEvent.TAKEN): LaneState.FLOWING,
        (LaneState.DOWN, LaneEvent.FAILED): LaneState.PROBING,
        (LaneState.DOWN, LaneEvent.FAILED_AGAIN): LaneState.PROBING,
    }
)
"""A lane of the outbox. It is no event if a message fails once more after the service took another:
it tells nothing about the service."""


@dataclass(slots=True)
class HeldMessage:
    """A message that failed alone: it is held apart, and sent alone at growing intervals."""

    since: float
    taken_before: int
    """The lane's `taken` at its first failure."""
    error: BaseException
    refused_at: int | None = None
    """The lane's `taken` at its first refusal."""
    failures: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class LaneRecord:
    """State, failures and back-off of a lane. All of it may be lost: it is learned again."""

    state: LaneState = LaneState.FLOWING
    taken: int = 0
    """Requests that the service took."""
    failures: int = 0
    """Requests that failed since then, but for those that mean LATER."""
    tries: int = 0
    """All requests that failed since then."""
    waits: int = 0
    not_before: float = 0.0
    asked_until: float = 0.0
    """Until when the service asked to be left alone, with or without a time."""
    max_items: int = _UNBOUNDED
    """Halved by a request that was too large, doubled by each that is taken."""
    divided: int = 0
    """Messages of a failed request that were not taken since: the next ones hold half of them."""
    held: dict[int, HeldMessage] = field(default_factory=dict)
    """By the number of the message, in the order of their first failures."""
    error: BaseException | None = None
    """Why the last request failed; None after one that was taken."""
    since: float = 0.0
    """When the first request failed since one was taken."""

    def suspects(self) -> list[int]:
        """Return the messages that failed with nothing taken since: it may be the service.

        Of these the oldest alone is tried again until something is taken.
        """
        return [number for number, held in self.held.items() if held.taken_before == self.taken]


@dataclass(frozen=True, slots=True)
class LaneTrouble:
    """Why items of a lane are not delivered. Times are those of the schedule's clock."""

    error: BaseException
    since: float
    tries: int
    """Failures in a row: of the lane, or of the message that is held apart for the longest time."""
    next_try: float
    held: int
    """Messages that failed though the service took others: they are held apart."""


class Schedule:
    """When each lane may send, and what. Times are seconds of a monotonic clock.

    The lanes that are passed map to whether something waits there that is not held apart.
    """

    def __init__(self) -> None:
        self._lanes: dict[Lane, LaneRecord] = {}
        self._busy: set[str] = set()
        self._blocked_until = 0.0
        self.blocked: BaseException | None = None
        """Why nothing at all is sent; None while it is."""

    def ready(self, lanes: Mapping[Lane, bool], now: float) -> list[Lane]:
        """Return the lanes that may send now: at most one of each device that is not sending."""
        if now < self._blocked_until:
            return []
        chosen: dict[str, Lane] = {}
        for lane in sorted(lanes, key=_rank):
            if lane[0] not in self._busy and self._time(lane, lanes[lane]) <= now:
                chosen.setdefault(lane[0], lane)
        return list(chosen.values())

    def next_time(self, lanes: Mapping[Lane, bool]) -> float | None:
        """Return when the next lane of an idle device may send, None if there is none."""
        times = [self._time(lane, lanes[lane]) for lane in lanes if lane[0] not in self._busy]
        return max(min(times), self._blocked_until) if times else None

    def _time(self, lane: Lane, fresh: bool) -> float:
        record = self._record(lane)
        if fresh or record.state is LaneState.DOWN or not record.held:
            return record.not_before
        later = record.suspects()[1:]
        times = [held.not_before for number, held in record.held.items() if number not in later]
        return max(record.not_before, min(times))

    def held(self) -> dict[Lane, frozenset[int]]:
        """Return the messages of each lane that are held apart."""
        return {lane: frozenset(each.held) for lane, each in self._lanes.items() if each.held}

    def select(self, lane: Lane, *, fresh: bool, now: float) -> Selection:
        """Return what the lane's next request may hold."""
        record = self._record(lane)
        items, size = LIMITS[lane[1]]
        held = frozenset(record.held)
        messages = 1
        if record.state is LaneState.DOWN:
            apart = held.difference(record.suspects()[:1])
        elif record.state is LaneState.PROBING and fresh:
            apart = held
        else:
            later = frozenset(n for n, each in record.held.items() if each.not_before > now)
            apart = later.union(record.suspects()[1:])
            if record.state is LaneState.FLOWING:
                messages = max(1, record.divided // 2) if record.divided else _UNBOUNDED
        return Selection(min(items, record.max_items), size, messages, apart, alone=held)

    def started(self, lane: Lane) -> None:
        """Record that a request of the lane's device is in flight."""
        self._busy.add(lane[0])

    def ended(self, lane: Lane) -> None:
        """Record that the request has ended."""
        self._busy.discard(lane[0])

    def gone(self, lane: Lane, selection: Selection) -> None:
        """Record that nothing is there of a selection: what was held was delivered or dropped."""
        for number in selection.alone - selection.apart:
            self.forget(lane, number)

    def settle(self, lanes: Mapping[Lane, bool]) -> bool:
        """End the trouble of lanes where nothing waits any more; return whether there was one.

        What failed there was dropped, parked, or grew too old. What the service asked for stays.
        """
        over = [
            record
            for lane, record in self._lanes.items()
            if lane not in lanes and (record.error is not None or record.held)
        ]
        for record in over:
            record.error, record.tries = None, 0
            record.held.clear()
        return bool(over)

    def forget(self, lane: Lane, message: int) -> None:
        """Record that a message does not wait any more."""
        self._record(lane).held.pop(message, None)

    def delivered(self, lane: Lane, messages: Sequence[int]) -> None:
        """Record a success: the lane may send at once, and larger requests again."""
        record = self._record(lane)
        record.state = TRANSITIONS[record.state, LaneEvent.TAKEN]
        fresh = [n for n in dict.fromkeys(messages) if record.held.pop(n, None) is None]
        record.taken += 1
        was_failing = record.tries > 0
        record.failures = record.tries = record.waits = 0
        record.not_before = record.asked_until = 0.0
        record.error = None
        record.divided = max(0, record.divided - len(fresh))
        record.max_items = min(record.max_items * 2, _UNBOUNDED)
        self.blocked, self._blocked_until = None, 0.0
        if was_failing:
            self.service_is_back()

    def failed(
        self,
        lane: Lane,
        kind: FailureKind,
        error: BaseException,
        *,
        messages: Sequence[int] = (),
        now: float,
        jitter: float,
    ) -> None:
        """Record the failure of a request; `messages` are those of its items, one by one.

        It sets when the lane may send again, and what. `jitter` (0..1) lengthens a wait by up to a
        quarter.
        """
        record, items = self._record(lane), len(messages)
        messages = list(dict.fromkeys(messages))
        asked_s = wait_asked_s(error)
        if asked_s:
            record.asked_until = max(record.asked_until, now + asked_s)
        record.not_before = max(record.not_before, now + asked_s)
        held = record.held.get(messages[0]) if len(messages) == 1 else None
        if kind in TRIES and held is not None and held.taken_before < record.taken:
            self._hold(record, messages[0], kind, error, now=now, jitter=jitter)
            return
        record.since = record.since if record.tries else now
        record.error = error
        record.tries += 1
        record.failures += kind in TRIES
        if kind is FailureKind.SMALLER:
            record.max_items = max(1, items // 2)
        elif kind is FailureKind.BLOCKED:
            self.blocked = error
            self._blocked_until = now + _BLOCKED_WAIT_S
        elif kind not in TRIES or not messages or self._tries_left(record, kind, messages):
            _wait(record, error, now=now, jitter=jitter)
        elif len(messages) > 1:
            record.divided = len(messages)
            if kind is not FailureKind.REFUSED:
                record.not_before = max(record.not_before, now + FIRST_WAIT_S * (1 + jitter / 4))
        else:
            record.divided = 0
            self._hold(record, messages[0], kind, error, now=now, jitter=jitter)

    def _tries_left(self, record: LaneRecord, kind: FailureKind, messages: Sequence[int]) -> bool:
        divided = len(messages) > 1 and record.divided
        return not divided and record.failures < TRIES[kind]

    def _hold(
        self,
        record: LaneRecord,
        message: int,
        kind: FailureKind,
        error: BaseException,
        *,
        now: float,
        jitter: float,
    ) -> None:
        """Hold a message apart that failed alone; find out whether it is the service."""
        event = LaneEvent.FAILED_AGAIN if message in record.held else LaneEvent.FAILED
        held = record.held.setdefault(message, HeldMessage(now, record.taken, error))
        held.error = error
        held.failures += 1
        first_s = FIRST_WAIT_S
        if kind is FailureKind.REFUSED:
            first_s = _REFUSED_WAIT_S
            held.refused_at = record.taken if held.refused_at is None else held.refused_at
        held.not_before = now + _backoff_s(held.failures, error, jitter, first_s=first_s)
        if held.taken_before < record.taken:
            return
        record.state = TRANSITIONS[record.state, event]
        if record.state is LaneState.DOWN:
            _wait(record, error, now=now, jitter=jitter, first_s=first_s)

    def at_fault(self, lane: Lane, message: int) -> bool:
        """Return whether the service took another message after it first refused this one."""
        record = self._record(lane)
        held = record.held.get(message)
        return held is not None and held.refused_at is not None and held.refused_at < record.taken

    def service_is_back(self) -> None:
        """End every wait that may have been for the service, but not what it asked for itself."""
        self._blocked_until = 0.0
        for record in self._lanes.values():
            record.not_before = min(record.not_before, record.asked_until)
            for number in record.suspects():
                held = record.held[number]
                held.not_before = min(held.not_before, record.asked_until)

    def try_now(self) -> None:
        """End every wait: a person asks, or the clock of the host was set."""
        self._blocked_until = 0.0
        for record in self._lanes.values():
            record.not_before = 0.0
            for held in record.held.values():
                held.not_before = 0.0

    def trouble(self) -> dict[Lane, LaneTrouble]:
        """Return what is wrong with each lane that fails, or holds messages apart."""
        found: dict[Lane, LaneTrouble] = {}
        for lane, record in self._lanes.items():
            held = next(iter(record.held.values()), None)
            count = len(record.held) - len(record.suspects())
            # Before the lane's own wait has ended, as the service asked for it, none is tried.
            if record.error is not None and (
                held is None
                or record.state is not LaneState.PROBING
                or record.not_before > held.not_before
            ):
                found[lane] = LaneTrouble(
                    record.error, record.since, record.tries, record.not_before, count
                )
            elif held is not None:
                found[lane] = LaneTrouble(
                    held.error, held.since, held.failures, held.not_before, count
                )
        return found

    def _record(self, lane: Lane) -> LaneRecord:
        return self._lanes.setdefault(lane, LaneRecord())


def _wait(
    record: LaneRecord,
    error: BaseException,
    *,
    now: float,
    jitter: float,
    first_s: float = FIRST_WAIT_S,
) -> None:
    record.waits += 1
    record.not_before = now + _backoff_s(record.waits, error, jitter, first_s=first_s)
    if isinstance(error, RateLimited):
        record.asked_until = record.not_before


def _backoff_s(failures: int, error: BaseException, jitter: float, *, first_s: float) -> float:
    return backoff_s(
        failures,
        first_s=first_s,
        longest_s=LONGEST_WAIT_S,
        jitter=jitter,
        at_least_s=wait_asked_s(error),
    )


def _rank(lane: Lane) -> tuple[int, str]:
    # A crash is what somebody waits for; events come before the bulk of the chunks.
    return (ItemKind.COREDUMP, ItemKind.EVENT, ItemKind.CHUNK).index(lane[1]), lane[0]
