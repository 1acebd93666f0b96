"""The agent's own events about one kit, stored in the outbox and counted in a heartbeat.

Events come from the status registry; the observability service gets them as traces of a software
component of its own, on the kit's device.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import agent
from agent.auth.credential import Keyring
from agent.call import Scheme
from agent.config import Profile
from agent.daemon.snapshot import EventsStatus
from agent.daemon.status import AgentEvent, AgentEventKind, Concern
from agent.errors import AgentError
from agent.observability.ingest.device_identity import DeviceIdentity, IdentityTracker
from agent.observability.ingest.events import heartbeat, trace
from agent.outbox import ItemKind, NewItem, Outbox
from agent.redact import redact
from agent.tasks import first_of

SOFTWARE_TYPE = "cellagent"
"""The component that these events come from: beside the kit's own, on the same device."""
_LONGEST_DETAIL = 500  # characters
_MOST_PENDING = 1000  # events that wait in memory for room on the disk


@dataclass
class KitEvents:
    """The concern `events` of one kit.

    `names` is the identity of the kit as far as it is known; `wake` starts the delivery.

    `link_up_s` returns for how many seconds the kit's link was up so far.
    """

    concern: Concern[EventsStatus]
    outbox: Outbox
    names: IdentityTracker
    wake: Callable[[], None]
    link_up_s: Callable[[], float]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._is_on = True
        self._max_age_s = float("inf")
        self._pending: deque[tuple[AgentEventKind | None, NewItem]] = deque()
        self._storing = asyncio.Lock()
        self._added = asyncio.Event()
        self._began = self._counted_from = self.clock()
        self._up_before_s = 0.0
        self._counts: Counter[str] = Counter()

    def add(self, event: AgentEvent) -> None:
        """Add an event to those that `run` stores. Neither waits nor fails."""
        # The outbox remembers keys for that long: a repeated older event would be stored twice.
        too_old = (datetime.now(UTC) - event.at).total_seconds() >= self._max_age_s
        if self._is_on and not too_old:
            self._add_item(event.kind, event_item(event, self.names, self.concern.kit))

    def keep_at_once(self, event: AgentEvent) -> None:
        """Put an event into the outbox from another thread, while the event loop is stalled.

        Raises AgentError.
        """
        if self._is_on:
            self.outbox.put([event_item(event, self.names, self.concern.kit)])
            self._counts[event.kind.counter] += 1

    async def run(self, profile: Profile, keyring: Keyring) -> None:
        """Store events and heartbeats: the work of the concern."""
        settings = profile.events
        self._max_age_s = profile.outbox.max_age_s
        self._is_on = settings.own and Scheme.PROJECT_KEY in keyring
        if not self._is_on:
            async with self._storing:  # else the one that is being stored is gone at its end
                self._pending.clear()
            if settings.own:
                self.concern.set_off(
                    "no project key is set",
                    "`cellagent config set project_key` asks for it, `cellagent reload` takes it",
                )
            else:
                self.concern.set_off("events.own is false")
            return
        await self._store()
        self.concern.set_well()
        await first_of(self._store_added(), self._add_heartbeats(settings.heartbeat_s))

    def forget(self) -> None:
        """Count anew: what was counted was another kit's."""
        self._metrics()
        with self.concern.changing() as status:
            for kind in AgentEventKind:
                setattr(status, kind.counter, 0)

    async def store(self) -> None:
        """Store what is still in memory, as far as that can be done."""
        with suppress(AgentError):
            await self._store()

    def _add_item(self, kind: AgentEventKind | None, item: NewItem) -> None:
        if len(self._pending) >= _MOST_PENDING:
            with self.concern.changing() as status:
                status.lost += 1
            return
        self._pending.append((kind, item))
        self._added.set()

    async def _store_added(self) -> None:
        while True:
            await self._added.wait()
            await self._store()

    async def _store(self) -> None:
        """Put what waits into the outbox. Raises AgentError; the rest then stays pending."""
        # A cancelled caller must not leave an event stored that is still pending, and not counted.
        await asyncio.shield(self._store_pending())

    async def _store_pending(self) -> None:
        self._added.clear()
        async with self._storing:
            while self._pending:
                kind, item = self._pending[0]
                receipt = await self.outbox.aput([item])
                self._pending.popleft()
                if receipt.ids:  # else it was there already, from before a restart of the agent
                    self.wake()
                    self._count(kind)

    def _count(self, kind: AgentEventKind | None) -> None:
        if kind is not None:
            self._counts[kind.counter] += 1
            with self.concern.changing() as status:
                setattr(status, kind.counter, getattr(status, kind.counter) + 1)

    async def _add_heartbeats(self, interval_s: float) -> None:
        if not interval_s:
            await asyncio.Event().wait()
        while True:
            left_s = self._counted_from + interval_s - self.clock()
            await asyncio.sleep(max(0.0, left_s))
            item = heartbeat_item(self._metrics(), self.names, self.concern.kit, datetime.now(UTC))
            self._add_item(None, item)

    def _metrics(self) -> dict[str, float]:
        """Return what was counted since the last heartbeat, and begin anew."""
        now, up_s, counts = self.clock(), self.link_up_s(), self._counts
        metrics = {
            "interval_s": round(now - self._counted_from, 3),
            "agent_uptime_s": round(now - self._began, 3),
            "link_up_s": round(up_s - self._up_before_s, 3),
            **{kind.counter: counts[kind.counter] for kind in AgentEventKind},
        }
        self._counted_from, self._up_before_s, self._counts = now, up_s, Counter()
        return metrics


def event_item(event: AgentEvent, names: IdentityTracker, kit: str) -> NewItem:
    """Return the trace of an event, ready for the outbox; `names` and `kit` say whose it is.

    Raises UsageError.
    """
    words, reason = event.kind.value
    # A port may have any bytes in its name.
    detail = redact(event.detail).encode(errors="backslashreplace").decode()[:_LONGEST_DETAIL]
    device = names.identity()
    software = _software_of(device)
    user_info = {"agent_event": words} | ({"detail": detail} if detail else {}) | software
    body = trace(_as_agent(device), reason, event.at, user_info=user_info)
    key = f"{kit} {words} {event.key or event.at.isoformat()}"
    return NewItem(ItemKind.EVENT, names.sender, body, event.at.timestamp(), key)


def heartbeat_item(
    metrics: Mapping[str, float], names: IdentityTracker, kit: str, when: datetime
) -> NewItem:
    """Return a heartbeat of the agent about one kit, ready for the outbox. Raises UsageError."""
    device = names.identity()
    body = heartbeat(_as_agent(device), metrics, when, user_info=_software_of(device))
    key = f"{kit} heartbeat {when.isoformat()}"
    return NewItem(ItemKind.EVENT, names.sender, body, when.timestamp(), key)


def _as_agent(device: DeviceIdentity) -> DeviceIdentity:
    """Return the agent as a software component of the device."""
    return replace(device, software_type=SOFTWARE_TYPE, software_version=agent.__version__)


def _software_of(device: DeviceIdentity) -> dict[str, str]:
    """Return what the kit itself runs, as far as that is known."""
    named = {"software_type": device.software_type, "software_version": device.software_version}
    return {name: value for name, value in named.items() if value != "unknown"}
