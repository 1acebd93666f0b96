"""What the record of a run may be told, and in which order: on a real ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from agent.provisioning.boards.board import BoardState
from agent.provisioning.ledger import RunRecord
from agent.provisioning.planning.goal import Goal
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.board_ledger import BoardLedger
from agent.provisioning.running.run_state import RunState
from at.protocol.state_machine import IllegalTransition
from tests.support.provisioning.claimed_boards import END
from tests.support.provisioning.ledgers import UUID, opened, run_of

BOARD = BoardState("350457791234567", UUID, "nRF9161", "mfw_nrf91x1_2.0.4", "", 0, False, ())

Do = Callable[[BoardLedger], Awaitable[object] | None]
DO: dict[str, tuple[Do, RunState]] = {
    "identify": (lambda ledger: ledger.identify(BOARD, UUID), RunState.IDENTIFIED),
    "claim": (lambda ledger: ledger.claim(BOARD, Goal(10)), RunState.CLAIMED),
    "write": (
        lambda ledger: ledger.begin(ProvisioningStep.CA_CHAIN, "10:0", writes=1),
        RunState.CHANGED,
    ),
    "register": (lambda ledger: ledger.finish_registration("", "onboard"), RunState.REGISTERED),
    "claim the device": (
        lambda ledger: ledger.finish(ProvisioningStep.REGISTER),
        RunState.REGISTERED,
    ),
    "end": (lambda ledger: ledger.conclude(END), RunState.ENDED),
}
NOTES: dict[str, Do] = {
    "begin": lambda ledger: ledger.begin(ProvisioningStep.OFFLINE, "1"),
    "finish": lambda ledger: ledger.finish(ProvisioningStep.LIMITS),
    "refuse": lambda ledger: ledger.refused(ProvisioningStep.KEY, "523"),
    "make a key": lambda ledger: ledger.finish_key("", "PEM", "digest"),
    "learn": lambda ledger: ledger.update(request_id="1"),
    "consent": lambda ledger: ledger.consent("--rekey"),
    "begin to register": lambda ledger: ledger.begin_registration("", "onboard"),
    "hold the id": lambda ledger: ledger.hold_device_id("none"),
}
CLAIMED = ("identify", "claim")


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[AsyncLedger]:
    opened_ledger = AsyncLedger(lambda: opened(str(tmp_path / "ledger.sqlite")))
    yield opened_ledger
    opened_ledger.close()


async def runs_of(ledger: AsyncLedger) -> list[RunRecord]:
    return await ledger.call(lambda opened: opened.select(RunRecord, "", {}))


async def done(do: Do, run: BoardLedger) -> None:
    """Do something to a run, and wait for it if that takes any."""
    if (waits := do(run)) is not None:
        await waits


async def lived(ledger: AsyncLedger, *what: str) -> BoardLedger:
    run = BoardLedger(ledger, run_of(""))
    for one in what:
        do, after = DO.get(one) or (NOTES[one], run.state)
        await done(do, run)
        assert run.state is after, one
    return run


@pytest.mark.parametrize(
    "what",
    [
        ("end",),
        ("identify", "end"),
        (*CLAIMED, "end", "end"),
        (*CLAIMED, "write", "write", "register", "end"),
        (*CLAIMED, "register", "end"),
        (*CLAIMED, "claim the device", "end"),
        (*CLAIMED, "write", "end"),
        *((*CLAIMED, note, "write", note, "register", note, "end") for note in NOTES),
    ],
    ids=", ".join,
)
async def test_a_run_lives_and_leaves_one_record(
    ledger: AsyncLedger, what: tuple[str, ...]
) -> None:
    await lived(ledger, *what)
    [run] = await runs_of(ledger)
    assert (run.outcome, run.ended_at is None) == ("done", False)
    assert run.writes == what.count("write")
    assert run.uuid == (UUID if "identify" in what else "")
    again = BoardLedger(ledger, run_of(""))
    again.identify(BOARD, UUID)
    await again.claim(BOARD, Goal(10))  # it was released


@pytest.mark.parametrize(
    ("before", "what"),
    [
        *(((), one) for one in ("claim", "write", "register", *NOTES)),
        *((("identify",), one) for one in ("identify", "write", "register", *NOTES)),
        *((CLAIMED, one) for one in CLAIMED),
        *(((*CLAIMED, "write"), one) for one in CLAIMED),
        *(((*CLAIMED, "register"), one) for one in (*CLAIMED, "write", "register")),
        *(((*CLAIMED, "end"), one) for one in (*CLAIMED, "write", "register", *NOTES)),
    ],
    ids=str,
)
async def test_what_is_not_in_the_table_raises_and_changes_nothing(
    ledger: AsyncLedger, before: tuple[str, ...], what: str
) -> None:
    run = await lived(ledger, *before)
    state, records = run.state, await ledger.call(lambda opened: [*opened.changes()])
    do = DO[what][0] if what in DO else NOTES[what]
    with pytest.raises(IllegalTransition):
        await done(do, run)
    assert run.state is state
    assert await ledger.call(lambda opened: [*opened.changes()]) == records


def test_a_run_is_done_where_it_changed_what_it_found() -> None:
    assert [one.value for one in RunState if one.has_changed] == ["changed", "registered"]
