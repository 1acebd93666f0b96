"""A batch of boards: one task each; one that fails never stops the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

from agent.errors import AgentError, RefusedByRule, exit_code_of
from agent.provisioning import board_run
from agent.provisioning.board import BoardLocation, BoardPort
from agent.provisioning.board_ledger import AsyncLedger, history_of
from agent.provisioning.goal import Goal
from agent.provisioning.outcome import Outcome, outcome_of, run_end, unexpected_failure
from agent.provisioning.plan import ProvisioningPlan, ProvisioningStep
from agent.tasks import cancel_and_wait
from at.protocol.errors import AtError

OpenBoard = Callable[[BoardLocation], AbstractAsyncContextManager["BoardPort"]]
OnStep = Callable[[BoardLocation, "ProvisioningStep"], None]
ListBoards = Callable[[], Mapping[str, tuple[BoardLocation, object]]]
"""Returns what is connected, by port, each with a mark that changes when it is connected anew."""


def require_count(locations: Sequence[BoardLocation], number: int | None) -> None:
    """Check the number of boards; None allows any. Raises RefusedByRule."""
    if number is not None and len(locations) != number:
        names = ", ".join(
            location.slot or location.usb_place or location.port for location in locations
        )
        raise RefusedByRule(
            f"{len(locations)} boards are there, {number} were expected: {names or 'none'}",
            hint="check cables and power, or correct --expect; nothing was written",
        )


async def run_boards(
    locations: Sequence[BoardLocation],
    station: board_run.Station,
    open_board: OpenBoard,
    on_step: OnStep,
) -> AsyncGenerator[Outcome]:
    """Run every board at once and yield each outcome as it comes."""
    tasks = [
        asyncio.create_task(run_board(location, station, open_board, on_step))
        for location in locations
    ]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        # Stopped half-way: each board's mode is put back before its port is closed.
        await cancel_and_wait(*tasks)


async def watch_boards(
    list_boards: ListBoards,
    station: board_run.Station,
    open_board: OpenBoard,
    on_step: OnStep,
    every_s: float,
) -> AsyncGenerator[Outcome]:
    """Run boards as they are connected, until cancelled; yield outcomes as they come.

    A board that is disconnected and comes back is run again, which only checks a finished one; so
    is one that was swapped for another, however quickly. `list_boards` is called again when a board
    has ended, and after `every_s` seconds.
    """
    running: dict[str, asyncio.Task[Outcome]] = {}
    begun: dict[str, object] = {}
    try:
        while True:
            connected = await asyncio.to_thread(list_boards)
            begun = {
                port: mark for port, mark in begun.items() if port in running or port in connected
            }
            for port, (location, mark) in connected.items():
                if port not in running and begun.get(port) != mark:
                    begun[port] = mark
                    work = run_board(location, station, open_board, on_step)
                    running[port] = asyncio.create_task(work)
            if running:
                await asyncio.wait(
                    running.values(), timeout=every_s, return_when=asyncio.FIRST_COMPLETED
                )
            else:
                await asyncio.sleep(every_s)
            for port in [port for port, task in running.items() if task.done()]:
                yield running.pop(port).result()
    finally:
        await cancel_and_wait(*running.values())


async def run_board(
    location: BoardLocation, station: board_run.Station, open_board: OpenBoard, on_step: OnStep
) -> Outcome:
    """Open one board, run it and close it. A board that cannot be opened is an outcome as well."""
    ledger = station.run_at(location)
    try:
        async with open_board(location) as port:
            run = board_run.BoardRun(
                port, location, station, ledger, lambda step: on_step(location, step)
            )
            return await run.run()
    except (AgentError, AtError) as error:
        outcome = _not_opened(location, error)
    except Exception as defect:  # noqa: BLE001 - whatever is wrong with one stops no other
        outcome = _not_opened(location, unexpected_failure(defect, location))
    with suppress(AgentError):  # why the board could not be opened is the better reason
        await ledger.conclude(run_end(outcome, ""), station.now())
    return outcome


def _not_opened(location: BoardLocation, error: AgentError | AtError) -> Outcome:
    return Outcome(
        location=location,
        outcome=outcome_of(error),
        step="find",
        exit=exit_code_of(error),
        reason_code=error.kind,
        reason=str(error),
        hint=error.hint,
    )


@dataclass(frozen=True, slots=True)
class PlannedBoard:
    """The plan for the board at a location, or why there is none; `exit` is as that of `run`."""

    location: BoardLocation
    device_id: str
    uuid: str
    plan: ProvisioningPlan
    exit: int


async def plan_boards(
    locations: Sequence[BoardLocation], goal: Goal, ledger: AsyncLedger, open_board: OpenBoard
) -> Sequence[PlannedBoard]:
    """Plan every board at once, in the order of `locations`; one that fails stops no other."""
    return await asyncio.gather(
        *(_plan_board(location, goal, ledger, open_board) for location in locations)
    )


async def _plan_board(
    location: BoardLocation, goal: Goal, ledger: AsyncLedger, open_board: OpenBoard
) -> PlannedBoard:
    try:
        async with open_board(location) as port:
            board = await port.read()
            device_id = goal.device_id(board.uuid, board.imei) if not board.refusal else ""
            history = await ledger.call(
                lambda opened: history_of(opened, board.uuid, goal, device_id, board.credentials)
            )
            plan = await board_run.plan_board(port, board, goal, history)
    except (AgentError, AtError) as error:
        failed = ProvisioningPlan(refusal=str(error), hint=error.hint)
        return PlannedBoard(location, "", "", failed, exit_code_of(error))
    code = RefusedByRule.exit_code if plan.refusal else 0
    return PlannedBoard(location, device_id, board.uuid, plan, code)
