"""A service that fails on some items, and a delivery to it that is killed and started again.

Time is the test's: a wait moves the clock, and nothing sleeps.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent.config.profile import OutboxSettings
from agent.errors import InvalidRequest, ServerTrouble, Unreachable
from agent.outbox import Outbox
from agent.outbox.delivery_loop import Delivery
from agent.outbox.delivery_requests import request_id
from agent.outbox.items import Item
from tests.support.outbox.outboxes import Clock, outbox

POISON: dict[str, Exception] = {
    "refused": InvalidRequest("bad", status=400),
    "fault": ServerTrouble("500", status=500),
    "reset": Unreachable("reset"),
    "defect": ZeroDivisionError("a defect"),
}
LIMITS = OutboxSettings(min_free_bytes=0, park_after=3)


class PoisonedService:
    """Takes all requests but those that hold poison, by body; a kill ends some of them half-way.

    `wrong` is what it answers to everything meanwhile, None while it is right.
    """

    def __init__(self, poison: dict[bytes, str], kills: frozenset[int] = frozenset()) -> None:
        self.poison = poison
        self.kills = kills
        self.wrong: Exception | None = None
        self.taken: list[bytes] = []
        self.requests = 0
        self._bodies: dict[str, list[bytes]] = {}

    async def send(self, items: Sequence[Item]) -> None:
        number = self.requests
        self.requests += 1
        await asyncio.sleep(0)
        bodies = [item.body for item in items]
        assert self._bodies.setdefault(request_id(items), bodies) == bodies
        if number in self.kills and number % 2:
            raise asyncio.CancelledError
        if self.wrong is not None:
            raise self.wrong
        for body in bodies:
            if body in self.poison:
                raise POISON[self.poison[body]]
        self.taken += bodies
        if number in self.kills:
            raise asyncio.CancelledError


def delivery_to(box: Outbox, service: PoisonedService, clock: Clock) -> Delivery:
    async def wait(changed: asyncio.Event, seconds: float) -> None:
        if delivery._running:
            await changed.wait()
        else:
            clock.now += seconds

    delivery = Delivery(box, service, clock=clock, wait=wait, jitter=lambda: 0.5)
    return delivery


async def deliver_good(folder: Path, service: PoisonedService, good: set[bytes]) -> float:
    """Deliver until all that is good arrived, by a new process after each kill; return seconds."""
    clock = Clock(0.0)
    while True:
        with outbox(folder, LIMITS) as box:
            delivery = delivery_to(box, service, clock)
            while service.requests - 1 not in service.kills:
                before = clock.now
                await asyncio.wait([asyncio.ensure_future(delivery.flush(patience_s=3600.0))])
                if good <= set(service.taken):
                    return clock.now
                clock.now = max(clock.now, before + 3600.0)
                if clock.now > 30 * 86400.0:
                    raise AssertionError("good items wait")
        service.kills -= {service.requests - 1}
