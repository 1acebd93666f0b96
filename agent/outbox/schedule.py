"""Chooses which items are sent next, and when. Pure: times are arguments.

A lane is a device and a kind. Each lane has its own back-off; a device has one request in flight,
whatever the kind, so that its chunks arrive in the order of the device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.observability.ingest.chunks import MAX_CHUNKS, MAX_CHUNKS_BYTES
from agent.observability.ingest.events import MAX_EVENTS, MAX_EVENTS_BYTES
from agent.outbox.failures import FailureKind
from agent.outbox.items import ItemKind
from agent.retry import backoff_s

Lane = tuple[str, ItemKind]

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 3600.0
_REFUSED_WAIT_S = 1.0  # between the refusals of one item: the items behind it are not at fault
_BLOCKED_WAIT_S = 3600.0  # until a refused credential is tried again unasked

LIMITS = {
    ItemKind.CHUNK: (MAX_CHUNKS, MAX_CHUNKS_BYTES),
    ItemKind.EVENT: (MAX_EVENTS, MAX_EVENTS_BYTES),
    ItemKind.COREDUMP: (1, 1 << 62),
}
"""Items and bytes of one request, unless a single item is larger."""


@dataclass(slots=True)
class LaneState:
    """Failures and back-off of a lane."""

    failures: int = 0
    not_before: float = 0.0
    max_items: int = 1 << 30
    """Halved by a request that was too large, doubled by each that is accepted."""
    trouble: str = ""
    """The message of the last failure; "" after a success."""


class Schedule:
    """When each lane may send. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, LaneState] = {}
        self._busy: set[str] = set()
        self._blocked_until = 0.0
        self.blocked = ""
        """Why nothing at all is sent; "" while it is."""

    def ready(self, lanes: Iterable[Lane], now: float) -> list[Lane]:
        """Return the lanes that may send now: at most one of each device that is not sending."""
        if now < self._blocked_until:
            return []
        chosen: dict[str, Lane] = {}
        for lane in sorted(lanes, key=_rank):
            device = lane[0]
            if device not in self._busy and self._state(lane).not_before <= now:
                chosen.setdefault(device, lane)
        return list(chosen.values())

    def next_time(self, lanes: Iterable[Lane]) -> float | None:
        """Return when the next lane of an idle device may send, None if there is none."""
        times = [self._state(lane).not_before for lane in lanes if lane[0] not in self._busy]
        return max(min(times), self._blocked_until) if times else None

    def limits(self, lane: Lane) -> tuple[int, int]:
        """Return how many items and bytes the lane's next request may hold."""
        items, size = LIMITS[lane[1]]
        return min(items, self._state(lane).max_items), size

    def started(self, lane: Lane) -> None:
        """Record that a request of the lane's device is in flight."""
        self._busy.add(lane[0])

    def ended(self, lane: Lane) -> None:
        """Record that the request has ended."""
        self._busy.discard(lane[0])

    def delivered(self, lane: Lane) -> None:
        """Record a success: the lane may send at once, and larger requests again."""
        state = self._state(lane)
        state.failures, state.not_before, state.trouble = 0, 0.0, ""
        state.max_items = min(state.max_items * 2, 1 << 30)
        self.blocked, self._blocked_until = "", 0.0

    def failed(
        self,
        lane: Lane,
        kind: FailureKind,
        error: BaseException,
        *,
        count: int,
        now: float,
        jitter: float,
    ) -> None:
        """Record a failure: it sets when the lane may send again.

        `jitter` (0..1) lengthens a wait by up to a quarter.
        """
        state = self._state(lane)
        state.trouble = str(error)
        if kind is FailureKind.SMALLER:
            state.max_items = max(1, count // 2)
        elif kind is FailureKind.REFUSED:
            state.not_before = now + _REFUSED_WAIT_S
        elif kind is FailureKind.BLOCKED:
            self.blocked = str(error)
            self._blocked_until = now + _BLOCKED_WAIT_S
        else:
            state.failures += 1
            state.not_before = now + backoff_s(
                state.failures,
                first_s=FIRST_WAIT_S,
                longest_s=LONGEST_WAIT_S,
                jitter=jitter,
                at_least_s=getattr(error, "retry_after_s", None) or 0.0,
            )

    def try_now(self) -> None:
        """End every wait: a person asks, or the network is back."""
        self._blocked_until = 0.0
        for state in self._lanes.values():
            state.not_before = 0.0

    def trouble(self) -> dict[Lane, str]:
        """Return the last error message of each lane that fails."""
        return {lane: state.trouble for lane, state in self._lanes.items() if state.trouble}

    def _state(self, lane: Lane) -> LaneState:
        return self._lanes.setdefault(lane, LaneState())


def _rank(lane: Lane) -> tuple[int, str]:
    # A crash is what somebody waits for; events come before the bulk of the chunks.
    return (ItemKind.COREDUMP, ItemKind.EVENT, ItemKind.CHUNK).index(lane[1]), lane[0]
