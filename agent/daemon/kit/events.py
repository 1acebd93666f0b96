"""What happens to one kit becomes events in the outbox: the concern `events`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING

from agent.call import Scheme
from agent.daemon.own_events import Happening, own_event, own_heartbeat
from agent.errors import AgentError
from agent.tasks import first_of, wait_for_event
from agent.wiring.forwarding import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.auth.credential import Keyring
    from agent.config import Profile
    from agent.daemon.own_events import Happened
    from agent.daemon.status import Concern
    from agent.observability.ingest.device_identity import DeviceIdentity
    from agent.outbox import NewItem, Outbox

_MOST_PENDING = 1000  # events that wait in memory for room on the disk


class KitEvents:
    """The agent's own events about one kit."""

    def __init__(
        self,
        concern: Concern,
        outbox: Outbox,
        identity: Callable[[], DeviceIdentity],
        wake: Callable[[], None],
        link_up_s: Callable[[], float],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`identity` and `link_up_s` tell who the kit is, and how long its link was up so far."""
        self.concern = concern
        self._outbox = outbox
        self._identity = identity
        self._wake = wake
        self._link_up_s = link_up_s
        self._clock = clock
        self._is_on = True
        self._max_age_s = float("inf")
        self._pending: deque[tuple[Happening | None, NewItem]] = deque()
        self._come = asyncio.Event()
        self._began = self._counted_from = clock()
        self._up_before_s = 0.0
        self._counts: Counter[str] = Counter()

    def take(self, happened: Happened) -> None:
        """Hear what happened. Neither waits nor fails: what keeps it is `run`."""
        # The outbox knows a key for as long: what is told again later would be another event.
        too_old = (utc_now() - happened.at).total_seconds() >= self._max_age_s
        if self._is_on and not too_old:
            self._add(happened.what, own_event(happened, self._identity(), self.concern.kit))

    def keep_at_once(self, happened: Happened) -> None:
        """Put an event into the outbox from another thread, while the event loop stands still.

        Raises AgentError.
        """
        if self._is_on:
            self._outbox.put([own_event(happened, self._identity(), self.concern.kit)])
            self._counts[happened.what.counter] += 1

    async def run(self, profile: Callable[[], Profile], keyring: Keyring) -> None:
        """Keep what is told, and count it in a heartbeat: the work of the concern."""
        wanted = profile().events
        self._max_age_s = profile().outbox.max_age_s
        self._is_on = wanted.own and Scheme.PROJECT_KEY in keyring
        if not self._is_on:
            self._pending.clear()
            if wanted.own:
                self.concern.off("no project key is set", "set CELLAGENT_PROJECT_KEY, then reload")
            else:
                self.concern.off("events.own is false")
            return
        await self._keep()
        self.concern.well()
        await first_of(self._keep_what_comes(), self._beat(wanted.heartbeat_s))

    async def close(self) -> None:
        """Keep what is still in memory, as far as that can be done."""
        with suppress(AgentError):
            await self._keep()

    # --- inside

    def _add(self, what: Happening | None, item: NewItem) -> None:
        if len(self._pending) >= _MOST_PENDING:
            self.concern.learn(lost=self.concern.facts.get("lost", 0) + 1)
            return
        self._pending.append((what, item))
        self._come.set()

    async def _keep_what_comes(self) -> None:
        while True:
            await self._come.wait()
            await self._keep()

    async def _keep(self) -> None:
        """Put what waits into the outbox. Raises AgentError; what is left then is put again."""
        self._come.clear()
        while self._pending:
            what, item = self._pending[0]
            receipt = await self._outbox.aput([item])
            self._pending.popleft()
            if receipt.ids:  # else it was there already: told before the agent was restarted
                self._wake()
                if what is not None:
                    self._counts[what.counter] += 1
                    self.concern.learn(
                        **{what.counter: self.concern.facts.get(what.counter, 0) + 1}
                    )

    async def _beat(self, interval_s: float) -> None:
        if not interval_s:
            await asyncio.Event().wait()
        while True:
            left_s = self._counted_from + interval_s - self._clock()
            await wait_for_event(asyncio.Event(), max(0.0, left_s))
            self._add(
                None,
                own_heartbeat(self._metrics(), self._identity(), self.concern.kit, utc_now()),
            )

    def _metrics(self) -> dict[str, float]:
        """Return what was counted since the last heartbeat, and begin anew."""
        now, up_s, counts = self._clock(), self._link_up_s(), self._counts
        metrics = {
            "interval_s": round(now - self._counted_from, 3),
            "agent_uptime_s": round(now - self._began, 3),
            "link_up_s": round(up_s - self._up_before_s, 3),
            **{what.counter: counts[what.counter] for what in Happening},
        }
        self._counted_from, self._up_before_s, self._counts = now, up_s, Counter()
        return metrics
