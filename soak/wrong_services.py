"""Services that are wrong: for everything for a while, or for one item for good. Nothing waits."""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.errors import InvalidRequest, NotFound, ServerTrouble
from agent.outbox import ItemKind, NewItem, delivery_loop, schedule
from tests.support.outbox.outboxes import Clock, chunks, event, outbox
from tests.support.outbox.poisoned_service import (
    LIMITS,
    POISON,
    PoisonedService,
    deliver_good,
    delivery_to,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "wrong-services"
SEED = 20261122
MOST_FOR_POISON = 40
"""Requests that one message costs at most on which the service fails, until the others are there:
its share of the division, three or ten tries, and those of its own."""
MOST_IN_A_DAY = 110
"""Requests to a service that fails on all it gets: two in each of 29 waits, the division before,
and one for each message that failed alone once it is right again."""


def messages(kind: ItemKind, count: int, dice: random.Random) -> list[list[NewItem]]:
    """Return messages of one device, no two alike; those of chunks have up to eight of them."""
    if kind is not ItemKind.CHUNK:
        return [[NewItem(kind, "kit", event(number).body)] for number in range(count)]
    return [
        chunks(b"\x02" + number.to_bytes(4, "little") * dice.randrange(1, 30))
        for number in range(count)
    ]


def poisoned(folder: Path, dice: random.Random) -> tuple[int, bool, float, float]:
    """Deliver one mixture; return good items lost, a break of order, requests and hours."""
    kind = dice.choice(list(ItemKind))
    made = messages(kind, dice.randrange(1, 60), dice)
    share = dice.choice([0.02, 0.1, 0.5, 0.9])
    poison: dict[bytes, str] = {}
    good: list[bytes] = []
    for each in made:
        if dice.random() < share:
            poison[dice.choice(each).body] = dice.choice(list(POISON))
        else:
            good += [item.body for item in each]
    kills = frozenset(dice.randrange(80) for _ in range(dice.randrange(5)))
    before = schedule.LIMITS[kind]
    schedule.LIMITS[kind] = (dice.choice([1, 2, 3, 7, 100]), before[1])
    service = PoisonedService(poison, kills)
    try:
        with outbox(folder, LIMITS) as box:
            box.put([item for each in made for item in each])
        seconds = asyncio.run(deliver_good(folder, service, set(good)))
    finally:
        schedule.LIMITS[kind] = before
    came = [body for body in dict.fromkeys(service.taken) if body in set(good)]
    spent = max(0, service.requests - sum(map(len, made)))
    spent_on_each = spent / max(1, len(poison) + len(kills))
    return len(set(good) - set(came)), came != good, spent_on_each, seconds / 3600


def wrong(folder: Path, dice: random.Random) -> tuple[int, int, bool, float]:
    """Let a service be wrong for a while; return parked, lost, a break of order, requests a day."""
    kind = dice.choice([ItemKind.EVENT, ItemKind.CHUNK])
    made = [item for each in messages(kind, dice.randrange(1, 200), dice) for item in each]
    clock, service = Clock(0.0), PoisonedService({})
    status = dice.choice([400, 404, 405, 410, 413, 415, 418, 451, 500, 502, 503, 504])
    refusal = NotFound if status in {404, 410} else InvalidRequest
    error = (ServerTrouble if status >= 500 else refusal)("<html>", status=status)
    days = dice.uniform(0.001, 3.0)

    async def work() -> None:
        delivery = delivery_to(box, service, clock)
        service.wrong = error
        for part in (made[: len(made) // 2], made[len(made) // 2 :]):
            await box.aput(part)
            await delivery.flush(patience_s=days * 43200)
        service.wrong = None
        await delivery.flush(patience_s=7200.0)

    with outbox(folder, LIMITS) as box:
        asyncio.run(work())
        parked = box.transact(lambda store: store.totals()).parked
    came = list(dict.fromkeys(service.taken))
    wanted = [item.body for item in made]
    return parked, len(set(wanted) - set(came)), came != wanted, service.requests / max(1.0, days)


def for_one_item(smoke: bool) -> Iterator[Row]:
    """Services that fail on single items, and are killed: the good ones pass, in order."""
    found = list(_tried(poisoned, smoke))
    lost, breaks, requests, hours = zip(*found, strict=True)
    control = f"{len(found)} mixtures, kills, seed {SEED}"
    yield Row("good items lost beside poison", sum(lost), "items", 0, control,
              fault="an item that no service takes", injected=len(found))  # fmt: skip
    yield Row("mixtures whose good items changed order", sum(breaks), "", 0)
    most = round(max(requests), 1)
    yield Row("requests for one poison item or kill", most, "requests", MOST_FOR_POISON)
    yield Row("until the last good item was there", round(max(hours), 1), "h of waits")


def for_all(smoke: bool) -> Iterator[Row]:
    """Services that are wrong for everything for a while: nothing is parked, nothing is lost."""
    found = list(_tried(wrong, smoke))
    parked, lost, breaks, requests = zip(*found, strict=True)
    control = f"{len(found)} wrong services, up to 3 days, seed {SEED}"
    yield Row("items parked by a wrong service", sum(parked), "items", 0, control)
    yield Row("items lost over it", sum(lost), "items", 0,
              fault="a service that is wrong for days", injected=len(found))  # fmt: skip
    yield Row("outboxes whose order broke", sum(breaks), "", 0)
    yield Row("requests a day to it", round(max(requests)), "requests", MOST_IN_A_DAY)


def _tried(
    trial: Callable[[Path, random.Random], tuple[float, ...]], smoke: bool
) -> Iterator[tuple[float, ...]]:
    logging.disable(logging.ERROR)  # thousands of failures are the point
    # It looks at the outbox when something is due, not each few seconds of a clock that leaps.
    delivery_loop.IDLE_S = 3600.0
    dice = random.Random(SEED)
    for number in range(10 if smoke else 500):
        with tempfile.TemporaryDirectory() as name:
            yield trial(Path(name) / str(number), dice)


PARTS = (for_one_item, for_all)
