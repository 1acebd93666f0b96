"""Boards swapped behind the bench's back, and a board that two stations have."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from trials.measure import counted

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ledger import open_ledger
from agent.provisioning.running.batch import run_board
from at.protocol.errors import LinkLost
from tests.support.keys.operator_ca import make_ca
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.station_crashes import Instrumented, StationFolder, forked
from tests.support.provisioning.virtual_tray import TAG

if TYPE_CHECKING:
    from agent.provisioning.running.outcome import Outcome


def swapped(station: StationFolder, dice: random.Random, count: int) -> tuple[int, int]:
    """Swap boards `count` times; return keys on a wrong board and swaps that were not noticed."""
    wrong = unnoticed = 0
    for number in counted("swaps", range(count)):
        first, second = 1_000_000 + 2 * number, 1_000_001 + 2 * number
        # By hand, so that the link breaks; or harsher than any hand, between two steps unseen.
        by_hand = number % 2 == 0
        outcome = asyncio.run(swap_once(station, first, second, dice, by_hand=by_hand))
        if by_hand:
            again = asyncio.run(station.provision(second))
            wrong += not again.ok
            unnoticed += outcome.ok
            continue
        if station.state(second).exists():
            held = json.loads(station.state(second).read_text())["credentials"]
            wrong += any(place.startswith(f"{TAG},") for place in held)
        unnoticed += outcome.outcome != "swapped"
    return wrong, unnoticed


async def swap_once(
    station: StationFolder, first: int, second: int, dice: random.Random, *, by_hand: bool
) -> Outcome:
    """Run the first board; at some point the second is in its place."""
    async with station.means() as means, station.open(first) as one, station.open(second) as two:
        # In commands, of which a run has 26 edges; or in steps, from the first after the look at
        # the board up to its registration.
        left = dice.randrange(1, 20) if by_hand else dice.randrange(2, 10)

        def link_breaks() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise LinkLost("the board was unplugged")

        port = Instrumented(one.inner, link_breaks if by_hand else lambda: None)

        def at_step(_place: BoardLocation, _step: object) -> None:
            nonlocal left
            left -= not by_hand
            if left == 0 and not by_hand:
                port.inner = two.inner

        @contextlib.asynccontextmanager
        async def opened(_place: BoardLocation) -> Any:
            yield port

        goal = replace(means.goal, prove=False)
        return await run_board(
            BoardLocation("", "", "", "tray"), replace(means, goal=goal), opened, at_step
        )


def two_stations(station: StationFolder, url: str, rounds: int) -> tuple[int, int]:
    """Run one board at two stations at once; return interleaved runs and boards not done."""
    interleaved = not_done = 0
    folders = [station.folder / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        make_ca(folder)
    for number in counted("rounds of two stations", range(rounds)):
        board = 2_000_000 + number
        there = [
            replace(station, folder=folder, ledger=url, name=folder.name) for folder in folders
        ]
        for child in [forked(partial(at.provision, board)) for at in there]:
            os.waitpid(child, 0)
        ledger = open_ledger(url, "judge", writes=False)
        try:
            [record] = [
                one for one in boards_of(ledger) if one.imei.startswith(f"0044010{board:07}")
            ]
            notes = [note.station for note in ledger.steps(record.uuid)]
        finally:
            ledger.close()
        changes = sum(one != other for one, other in pairwise(notes))
        interleaved += changes > 1
        not_done += not record.registered_key
    return interleaved, not_done
