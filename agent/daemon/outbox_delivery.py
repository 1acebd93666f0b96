"""The agent's outbox, its delivery, and how both do."""

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from agent.config.profile import OutboxSettings
from agent.daemon.snapshot import FailingLane, KitOutbox, OutboxStatus, Phase
from agent.daemon.states import row_of
from agent.daemon.status import Concern
from agent.daemon.supervisor import supervise
from agent.errors import ServiceRefusal
from agent.outbox.delivery_loop import Delivery, Sender
from agent.outbox.items import COUNTS
from agent.outbox.outbox import Outbox
from agent.outbox.schedule import Schedule
from agent.tasks import cancel_and_wait

_REFUSED = (
    "it is kept and tried again, as the service may be wrong; `cellagent outbox list` shows it, "
    "`cellagent outbox drop ID` removes it"
)


class OutboxDelivery:
    """The agent's outbox, and its delivery with the credentials that are in effect."""

    def __init__(
        self, folder: Path, limits: OutboxSettings, concern: Concern[OutboxStatus]
    ) -> None:
        """Open the outbox. Raises OutboxHeld while another process has it, AgentError."""
        self.outbox = Outbox(folder, limits)
        self._concern = concern
        # It outlives each delivery: who replaces a key did not mend it yet.
        self._schedule = Schedule()
        self._delivery: Delivery
        self._delivering: asyncio.Task[None] | None = None
        self._full_since: datetime | None = None  # as far as anybody looked
        if self.outbox.damage is not None:
            concern.log(logging.WARNING, str(self.outbox.damage))

    async def start(self, sender: Sender) -> None:
        """Deliver through `sender` from now on, and no longer through an earlier one.

        What failed is tried at once, and stays failed until something passes.
        """
        await self.stop()
        self._delivery = Delivery(self.outbox, sender, on_ended=self._show, schedule=self._schedule)
        self._schedule.try_now()
        if self._concern.phase is Phase.STARTING:
            self._concern.set_well()
        self._delivering = asyncio.ensure_future(supervise(self._concern, self._delivery.run))

    async def stop(self) -> None:
        """Deliver nothing more; what waits stays on disk."""
        delivering, self._delivering = self._delivering, None
        if delivering is not None:
            await cancel_and_wait(delivering)

    def close(self) -> None:
        """Close the outbox, so that another process may open it."""
        self.outbox.close()

    def wake(self) -> None:
        """Deliver what is new in the outbox."""
        self._delivery.wake()  # looked up at each call: `start` replaces it

    def try_now(self) -> None:
        """Deliver at once what waits for its next try."""
        self._delivery.try_now()

    def service_is_back(self) -> None:
        """Deliver at once what waits, but where the service asked for the wait."""
        self._delivery.service_is_back()

    def _show(self) -> None:
        """Record in the concern how the lanes do: of those that fail the first."""
        lanes = self._schedule.trouble().values()
        if lanes:
            error = min(lanes, key=lambda lane: lane.since).error
            if isinstance(error, ServiceRefusal):
                error.hint = error.hint or _REFUSED
            self._concern.record_failure(error)
        else:
            self._concern.set_well()

    async def status(self, now: datetime) -> tuple[OutboxStatus, dict[str, KitOutbox]]:
        """Return the status of the outbox with its totals, and what waits of each device."""
        totals, full, oldest, waiting = await self.outbox.atransact(
            lambda s: (s.totals(), s.disk_trouble(), s.list_items(1), s.waiting_of())
        )
        status = msgspec.structs.replace(
            self._concern.status,
            waiting=totals.waiting,
            parked=totals.parked,
            bytes=totals.bytes,
            counts=dict.fromkeys(COUNTS, 0) | totals.counts,
            oldest=datetime.fromisoformat(oldest[0].captured) if oldest else None,
        )
        failing = self._failing(now)
        if failing:
            # What passed last may have been another lane's: it ends no trouble of these.
            first = min(failing, key=lambda lane: lane.since)
            status.phase, status.failing = Phase.TROUBLE, failing
            status.since, status.failures = first.since, first.failures
            status.trouble = status.trouble or first.what
            status.next_try = min(lane.next_try for lane in failing)
        if full is None:
            self._full_since = None
        else:  # what waits may still be delivered: this comes first
            status.since = self._full_since = self._full_since or now
            status.phase, status.trouble = Phase.TROUBLE, str(full)
            status.hint = self._concern.pasteable(full.hint) or None
        status.state = row_of(status, now).state
        next_try: dict[str, datetime] = {}
        for lane in failing:
            next_try[lane.device] = min(lane.next_try, next_try.get(lane.device, lane.next_try))
        return status, {
            device: KitOutbox(count, datetime.fromtimestamp(at, UTC), next_try.get(device))
            for device, (count, at) in waiting.items()
        }

    def _failing(self, now: datetime) -> list[FailingLane]:
        return [
            FailingLane(
                device,
                kind.value,
                str(lane.error) or repr(lane.error),
                _utc(lane.since, now),
                lane.tries,
                _utc(lane.next_try, now),
                lane.held,
            )
            for (device, kind), lane in self._schedule.trouble().items()
        ]


def _utc(monotonic_s: float, now: datetime) -> datetime:
    at = now + timedelta(seconds=monotonic_s - time.monotonic())
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
