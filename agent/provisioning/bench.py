"""Many boards at once: one task each, a failed one never stops the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from agent.errors import AgentError, RefusedByRule, exit_code_of
from agent.provisioning.board_run import Bench, BoardRun
from agent.provisioning.outcome import Outcome, Place
from at.errors import AtError

if TYPE_CHECKING:
    from agent.provisioning.board_port import BoardPort
    from agent.provisioning.plan import Step

OpenBoard = Callable[[Place], AbstractAsyncContextManager["BoardPort"]]
OnStep = Callable[[Place, "Step"], None]
ListPlaces = Callable[[], Sequence[Place]]


def expect(places: Sequence[Place], number: int | None) -> None:
    """Refuse to begin when another number of boards is there. Raises RefusedByRule."""
    if number is not None and len(places) != number:
        names = ", ".join(place.slot or place.usb_place or place.port for place in places)
        raise RefusedByRule(
            f"{len(places)} boards are there, {number} were expected: {names or 'none'}",
            hint="check cables and power, or correct --expect; nothing was written",
        )


async def run_boards(
    places: Sequence[Place], bench: Bench, open_board: OpenBoard, on_step: OnStep
) -> AsyncIterator[Outcome]:
    """Run every board at once and yield each outcome as it comes."""
    tasks = [asyncio.create_task(run_board(place, bench, open_board, on_step)) for place in places]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        # Stopped half-way: each board puts its mode back before it lets go.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def watch_boards(
    list_places: ListPlaces,
    bench: Bench,
    open_board: OpenBoard,
    on_step: OnStep,
    pause: Callable[[], AsyncIterator[None]],
) -> AsyncIterator[Outcome]:
    """Run boards as they are plugged in, until cancelled; yield outcomes as they come.

    A board that is unplugged and comes back is run again, which only checks a done one. `pause`
    yields between two looks at what is plugged in.
    """
    running: dict[str, asyncio.Task[Outcome]] = {}
    done: set[str] = set()
    try:
        async for _ in pause():
            there = {place.port: place for place in list_places()}
            # A port that went away may come back with another board on it.
            done &= there.keys()
            for port in there.keys() - running.keys() - done:
                work = run_board(there[port], bench, open_board, on_step)
                running[port] = asyncio.create_task(work)
            for port in [port for port, task in running.items() if task.done()]:
                done.add(port)
                yield running.pop(port).result()
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


async def run_board(place: Place, bench: Bench, open_board: OpenBoard, on_step: OnStep) -> Outcome:
    """Open one board, run it, close it; a board that cannot be opened is an outcome, too."""
    try:
        async with open_board(place) as port:
            run = BoardRun(port, place, bench, lambda step: on_step(place, step))
            return await run.run()
    except (AgentError, AtError) as error:
        return Outcome.of(
            "failed", place, "", "", "find", str(error), error.hint, 0, exit_code_of(error)
        )
