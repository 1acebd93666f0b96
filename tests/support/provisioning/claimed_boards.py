"""Boards claimed in a ledger that every board of a run shares, and what is asked in one message."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agent.provisioning.boards.board import BoardLocation, BoardState
from agent.provisioning.planning.goal import Goal
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.board_ledger import BoardLedger
from agent.provisioning.running.outcome import Outcome
from tests.support.provisioning.ledgers import opened, run_of

NEVER_S = 1e6
_AT = BoardLocation("", "", "", "")
END = Outcome(location=_AT, outcome="done", step="proof")


def failed(step: str, reason_code: str, reason: str) -> Outcome:
    return Outcome(
        location=_AT, outcome="failed", step=step, exit=1, reason_code=reason_code, reason=reason
    )


@asynccontextmanager
async def ledger_of(
    address: str,
    alone_after_s: float = NEVER_S,
    pause_after_s: Callable[[float], float] = lambda _: 0.0,
) -> AsyncIterator[AsyncLedger]:
    ledger = AsyncLedger(lambda: opened(address), alone_after_s, pause_after_s)
    try:
        yield ledger
    finally:
        ledger.close()


async def claimed(ledger: AsyncLedger, uuid: str) -> BoardLedger:
    board = BoardState("350457791234567", uuid, "nRF9161", "mfw_nrf91x1_2.0.4", "", 0, False, ())
    run = BoardLedger(ledger, run_of(""))
    run.identify(board, uuid)
    await run.claim(board, Goal(10))
    return run


@asynccontextmanager
async def one_message(ledger: AsyncLedger) -> AsyncIterator[None]:
    """Keep the ledger's thread until the block ends: what is asked in it waits together."""
    free = threading.Event()
    keeping = asyncio.create_task(ledger.call(lambda _: free.wait(30)))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        free.set()
        await keeping


async def steps(ledger: AsyncLedger, uuid: str) -> list[tuple[str, str]]:
    notes = await ledger.call(lambda to: to.steps(uuid))
    return [(note.step, note.state) for note in notes]
