"""A batch of boards: one task each; one that fails never stops the others."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime

from msgspec import Struct

from agent.errors import AgentError, RefusedByRule, exit_code_of
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.planning.goal import Goal
from agent.provisioning.planning.plan import ProvisioningPlan, ProvisioningStep
from agent.provisioning.running import board_run
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.bench import Bench
from agent.provisioning.running.board_history import history_of
from agent.provisioning.running.outcome import Outcome, hint_of, outcome_of, unexpected_failure
from agent.provisioning.running.roll_call import Identity, RollCall
from agent.tasks import cancel_and_wait
from at.protocol.counts import counted
from at.protocol.errors import AtError

OpenBoard = Callable[[BoardLocation], AbstractAsyncContextManager[ModemBoard]]
OnStep = Callable[[BoardLocation, "ProvisioningStep"], None]
ListBoards = Callable[[], Mapping[str, tuple[BoardLocation, object]]]
"""Returns what is connected, by port, each with a mark that changes when it is connected anew."""
_log = logging.getLogger(__name__)


def require_count(locations: Sequence[BoardLocation], number: int | None) -> None:
    """Check the number of boards; None allows any. Raises RefusedByRule."""
    if number is not None and len(locations) != number:
        names = ", ".join(
            location.slot or location.usb_place or location.port for location in locations
        )
        these = f"; if these are all: `--expect {len(locations)}`" if locations else ""
        raise RefusedByRule(
            f"{counted(len(locations), 'boards')} found, {number} expected: {names or 'none'}",
            hint=f"nothing was written: check cables and power{these}",
        )


async def run_boards(
    locations: Sequence[BoardLocation],
    station: board_run.Station,
    open_board: OpenBoard,
    on_step: OnStep,
) -> AsyncGenerator[Outcome]:
    """Run every board at once and yield each outcome as it comes.

    None is written to before all have told what they are, nor before the ledger is open. Raises as
    AsyncLedger.opened.
    """
    _end_lost_runs(station.ledger)
    roll_call = RollCall(len(set(locations)))
    tasks = [
        asyncio.create_task(run_board(location, station, open_board, on_step, roll_call))
        for location in locations
    ]
    try:
        # They tell what they are while it is opened, which takes long where it is far away.
        await station.ledger.opened()
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        await _stop(station.ledger, tasks)


async def watch_boards(
    list_boards: ListBoards,
    station: board_run.Station,
    open_board: OpenBoard,
    bench: Bench,
    every_s: float,
) -> AsyncGenerator[Outcome]:
    """Run boards as they are connected, until cancelled; yield outcomes as they come.

    A board that is disconnected and comes back is run again, which only checks a finished one; so
    is one that was swapped for another, however quickly, and one that is to be tried again.
    `list_boards` is called again when a board has ended, when the bench was changed, and after
    `every_s` seconds. Raises as AsyncLedger.opened.
    """
    _end_lost_runs(station.ledger)
    await station.ledger.opened()
    running: dict[str, asyncio.Task[Outcome]] = {}
    roll_call = RollCall()
    try:
        while True:
            bench.changed.clear()
            bench.look(await asyncio.to_thread(list_boards))
            for slot in bench.tray.waiting():
                location = slot.location
                bench.begin(location)
                running[slot.key] = asyncio.create_task(
                    run_board(location, station, open_board, bench.step, roll_call, slot.label)
                )
            changed = asyncio.create_task(bench.changed.wait())
            await asyncio.wait(
                [changed, *running.values()], timeout=every_s, return_when=asyncio.FIRST_COMPLETED
            )
            changed.cancel()
            for key in [key for key, task in running.items() if task.done()]:
                yield running.pop(key).result()
    finally:
        await _stop(station.ledger, running.values())


async def _stop(ledger: AsyncLedger, boards: Collection[asyncio.Task[Outcome]]) -> None:
    """Stop the boards at work: each one's mode is put back before its port is closed."""
    if not all(board.done() for board in boards):
        ledger.stop_waiting()
    await cancel_and_wait(*boards)


def _end_lost_runs(ledger: AsyncLedger) -> None:
    """Have the runs end that were cut off before, in the message of the first claim."""

    def tell(ended: Future[None]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            _log.warning("runs that were cut off are not recorded as interrupted: %s", error)

    ledger.note(lambda to: to.end_lost_runs()).add_done_callback(tell)


async def run_board(
    location: BoardLocation,
    station: board_run.Station,
    open_board: OpenBoard,
    on_step: OnStep,
    roll_call: RollCall | None = None,
    label: str = "",
) -> Outcome:
    """Open one board, run it and close it. A board that cannot be opened is an outcome as well.

    `roll_call` hears what the boards of the run are; without one there is no other board. `label`
    is what was scanned for the board.
    """
    ledger, roll_call = station.run_at(location, label), roll_call or RollCall()
    try:
        async with open_board(location) as port:
            run = board_run.BoardRun(
                port, location, station, ledger, roll_call, lambda step: on_step(location, step)
            )
            return await run.run()
    except (AgentError, AtError) as error:
        outcome = _not_opened(location, error)
    except Exception as defect:  # noqa: BLE001 - whatever is wrong with one stops no other
        outcome = _not_opened(location, unexpected_failure(defect, location))
    finally:
        roll_call.leave(location)
    with suppress(AgentError):  # why the board could not be opened is the better reason
        await ledger.conclude(outcome)
    return outcome


def _not_opened(location: BoardLocation, error: AgentError | AtError) -> Outcome:
    return Outcome(
        location=location,
        outcome=outcome_of(error),
        step="find",
        exit=exit_code_of(error),
        reason_code=error.kind,
        reason=str(error),
        hint=hint_of(error),
    )


class PlannedBoard(Struct, frozen=True):
    """The plan for the board at a location, or why there is none; `exit` is as that of `run`."""

    location: BoardLocation
    device_id: str
    uuid: str
    plan: ProvisioningPlan
    exit: int


async def plan_boards(
    locations: Sequence[BoardLocation],
    goal: Goal,
    ledger: AsyncLedger,
    open_board: OpenBoard,
    now: datetime,
) -> Sequence[PlannedBoard]:
    """Plan every board at once, in the order of `locations`; one that fails stops no other."""
    roll_call = RollCall(len(set(locations)))
    return await asyncio.gather(
        *(_plan_board(place, goal, ledger, open_board, roll_call, now) for place in locations)
    )


async def _plan_board(
    location: BoardLocation,
    goal: Goal,
    ledger: AsyncLedger,
    open_board: OpenBoard,
    roll_call: RollCall,
    now: datetime,
) -> PlannedBoard:
    identity = Identity("", "", "")
    try:
        async with open_board(location) as port:
            board = await port.read()
            goal = goal.of(board)
            if not board.refusal:
                device_id = goal.device_id(board.uuid, board.imei)
                identity = Identity(board.uuid, board.imei, device_id)
                await roll_call.answer(location, identity)
            known = await ledger.call(lambda opened: opened.know(board.uuid, identity.device_id)())
            history = history_of(known, goal, now, board.credentials)
            plan = await board_run.plan_board(port, board, goal, history)
            code = RefusedByRule.exit_code if plan.refusal else 0
    except (AgentError, AtError) as error:
        plan = ProvisioningPlan(refusal=str(error), hint=hint_of(error))
        code = exit_code_of(error)
    finally:
        roll_call.leave(location)
    return PlannedBoard(location, identity.device_id, identity.uuid, plan, code)
