"""The delivery loop: one task, one request in flight per device, waits that `wake` ends."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.errors import AgentError
from agent.outbox.delivery_requests import FailureKind, classify_failure
from agent.outbox.handoff import collect
from agent.outbox.items import Item, Lane
from agent.outbox.outbox import Outbox
from agent.outbox.schedule import Schedule
from agent.tasks import WaitForEvent, cancel_and_wait, wait_for_event

IDLE_S = 5.0
"""The longest time between two looks at the outbox and at what other processes handed off."""

_log = logging.getLogger(__name__)


class Sender(Protocol):
    """Sends the items of one request, all of one lane, to the service."""

    async def send(self, items: Sequence[Item]) -> None:
        """Return once the service has accepted all of them. Raises AgentError."""


@dataclass
class Delivery:
    """Delivers what the outbox holds. `clock`, `wait` and `jitter` are replaced by tests.

    `on_ended` is called after each request, when `schedule` knows how it went, and where what
    failed waits no more.
    """

    outbox: Outbox
    sender: Sender
    clock: Callable[[], float] = time.monotonic
    wait: WaitForEvent = wait_for_event
    jitter: Callable[[], float] = random.random
    on_ended: Callable[[], None] = lambda: None
    schedule: Schedule = field(default_factory=Schedule)

    def __post_init__(self) -> None:
        self.delivered = 0
        """Items that the service has accepted."""
        self._changed = asyncio.Event()
        self._handoff_failed = False  # what other processes handed off could not be taken over
        self._running: dict[asyncio.Task[None], Lane] = {}

    def wake(self) -> None:
        """Look at the outbox now: something was added."""
        self._changed.set()

    def service_is_back(self) -> None:
        """End every wait but those that the service asked for: it answers again."""
        self.schedule.service_is_back()
        self._changed.set()

    def try_now(self) -> None:
        """End every wait: a person asks, or the clock of the host was set."""
        self.schedule.try_now()
        self._changed.set()

    async def run(self) -> None:
        """Deliver until cancelled; what is in flight then waits for the next start."""
        await self._deliver_until(None)

    async def flush(self, *, patience_s: float = 0.0) -> int:
        """Deliver what may be sent now, or within `patience_s` seconds; return how many items."""
        await self._deliver_until(self.clock() + patience_s)
        return self.delivered

    async def _deliver_until(self, deadline: float | None) -> None:
        try:
            while True:
                due = self.schedule.next_time(await self._start_ready())
                seconds = IDLE_S if due is None else due - self.clock()
                is_late = due is None or due > max(deadline or 0.0, self.clock())
                if deadline is not None and is_late and not self._running:
                    return
                await self.wait(self._changed, min(max(seconds, 0.0), IDLE_S))
        finally:
            await self._stop()

    async def _start_ready(self) -> Mapping[Lane, bool]:
        """Start a request for each lane that is ready; return all lanes."""
        self._changed.clear()
        try:
            await asyncio.to_thread(collect, self.outbox)
        except AgentError as error:
            if not self._handoff_failed:
                _log.warning("what others left stays where it is: %s", error)
            self._handoff_failed = True
        else:
            self._handoff_failed = False
        held = self.schedule.held()
        lanes = await self.outbox.atransact(lambda store: store.lanes(held))
        if self.schedule.settle(lanes):
            self.on_ended()
        for lane in self.schedule.ready(lanes, self.clock()):
            self.schedule.started(lane)
            sent = self._deliver(lane, fresh=lanes[lane])
            task = asyncio.create_task(sent, name=f"deliver {lane[1]} {lane[0]}")
            self._running[task] = lane
            task.add_done_callback(self._ended)
        return lanes

    def _ended(self, task: asyncio.Task[None]) -> None:
        lane = self._running.pop(task)
        self.schedule.ended(lane)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The outbox itself failed: the lane waits, the others go on.
            _log.error("%s of %s: %s", lane[1], lane[0] or "-", error)
            self._back_off(lane, FailureKind.LATER, error)
        self.on_ended()
        self._changed.set()

    def _back_off(
        self, lane: Lane, kind: FailureKind, error: BaseException, items: Sequence[Item] = ()
    ) -> None:
        self.schedule.failed(
            lane,
            kind,
            error,
            messages=[item.message for item in items],
            now=self.clock(),
            jitter=self.jitter(),
        )

    async def _stop(self) -> None:
        await cancel_and_wait(*self._running)
        # Not awaited: this may be a cancellation, and the work is done all the same.
        self.outbox.submit(lambda store: store.release_all())

    async def _deliver(self, lane: Lane, *, fresh: bool) -> None:
        selection = self.schedule.select(lane, fresh=fresh, now=self.clock())
        items = await self.outbox.atransact(lambda store: store.next_batch(*lane, selection))
        if not items:
            self.schedule.gone(lane, selection)
            return
        ids = [item.id for item in items]
        try:
            await self.sender.send(items)
        except Exception as error:  # noqa: BLE001 - a defect of ours may be one item's, too
            await self._failed(lane, items, error)
        except BaseException:
            self.outbox.submit(lambda store: store.release(ids))
            raise
        else:
            await self.outbox.atransact(lambda store: store.remove_delivered(ids))
            self.delivered += len(ids)
            self.schedule.delivered(lane, [item.message for item in items])

    async def _failed(self, lane: Lane, items: list[Item], error: Exception) -> None:
        kind = classify_failure(error, len(items))
        self._back_off(lane, kind, error, items)
        _log.warning("%s of %s: %s", lane[1], lane[0] or "-", error)
        message, ids = items[0].message, [item.id for item in items]
        if kind is not FailureKind.REFUSED or items[-1].message != message:
            await self.outbox.atransact(lambda store: store.release(ids))
            return
        reason, at_fault = str(error), self.schedule.at_fault(lane, message)
        if await self.outbox.atransact(
            lambda store: store.count_refusal(ids, reason, at_fault=at_fault)
        ):
            self.schedule.forget(lane, message)
            _log.error("%s of %s is parked after its last refusal: %s", lane[1], lane[0], error)
