"""The ledger for many tasks, and one board's part of it: its claim, record and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from agent.provisioning.boards.board import BoardState
from agent.provisioning.ledger import BoardRecord, Ledger, RunRecord
from agent.provisioning.ledger.backend import DatabaseFailed
from agent.provisioning.ledger.records import BEGUN, DONE, KEY_COLUMNS
from agent.provisioning.planning.goal import Goal
from agent.provisioning.planning.plan import BoardHistory, ProvisioningStep
from agent.provisioning.running.board_history import history_of, settle
from agent.provisioning.running.run_state import TRANSITIONS, RunEvent, RunState

T = TypeVar("T")

_REGISTER = ProvisioningStep.REGISTER.value
_CLOSE_TIMEOUT_S = 10.0


class AsyncLedger:
    """The ledger for many tasks: one call after the other, in a thread, since each is synced."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        # One thread: a call whose task was cancelled still ends before the next one begins.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._last: Future[Any] = self._thread.submit(lambda: None)

    async def call(self, work: Callable[[Ledger], T]) -> T:
        """Return the result of `work`. Raises DatabaseFailed where none comes."""
        call = self._last = self._thread.submit(work, self._ledger)
        patience_s = self._ledger.patience_s  # for the calls of all other boards as well
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.wrap_future(call)
        except TimeoutError as error:
            self._ledger.abort()
            raise DatabaseFailed(f"it did not answer within {patience_s:.0f} s") from error

    def close(self) -> None:
        """Wait, in bounded time, for the calls that were begun; then close the ledger."""
        if wait([self._last], _CLOSE_TIMEOUT_S).not_done:
            self._ledger.abort()
        self._thread.shutdown(cancel_futures=True)
        self._ledger.close()


class BoardLedger:
    """One board's run in the ledger: each step is recorded before and after it is done.

    `run` has just begun. Until `claim` the record is empty and no step is recorded; how the run
    ended is.
    """

    def __init__(self, ledger: AsyncLedger, run: RunRecord) -> None:
        self._ledger = ledger
        self._run = run
        self._record = BoardRecord("")
        self._state = RunState.OPENED
        self._consent = ""
        self._writes = 0

    @property
    def record(self) -> BoardRecord:
        """The board's record so far, with its key in the goal's tag."""
        return self._record

    @property
    def state(self) -> RunState:
        """How far the run has come."""
        return self._state

    @property
    def writes(self) -> int:
        """Credential writes of this run: each wears the modem's flash."""
        return self._writes

    def identify(self, board: BoardState, device_id: str) -> None:
        """Name the board of this run, as far as it has shown what it is; nothing is stored yet."""
        self._enter(RunEvent.IDENTIFY)
        self._run = replace(
            self._run,
            uuid=board.uuid,
            imei=board.imei,
            firmware=board.firmware,
            device_id=device_id,
        )
        self._record = BoardRecord(board.uuid, device_id=device_id)

    async def claim(self, board: BoardState) -> None:
        """Claim the board for this station, and begin its run. Raises BoardBusy."""

        def claimed(ledger: Ledger) -> BoardRecord:
            record = ledger.claim(self._run)
            settle(ledger, board)
            return ledger.board(board.uuid, self._run.security_tag) or record

        self._require(RunEvent.CLAIM)
        record = await self._ledger.call(claimed)
        self._record = replace(record, device_id=self._run.device_id)
        self._enter(RunEvent.CLAIM)

    async def bind_label(self, allowed: frozenset[str]) -> str:
        """Bind the label that was scanned, if any, to the board; return what `allowed` allowed.

        Raises LabelTaken.
        """
        label = self._run.label
        if not label:
            return ""
        return await self._ledger.call(
            lambda to: to.bind_label(self._uuid, label, replaces=label in allowed)
        )

    async def history(self, goal: Goal) -> BoardHistory:
        """Return what the ledger knows of the board that matters to its plan."""
        device_id = self._record.device_id
        return await self._ledger.call(lambda to: history_of(to, self._uuid, goal, device_id))

    async def unfinished(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that an earlier run began and did not end, else ""."""
        return await self._ledger.call(lambda to: to.unfinished(self._uuid, step.value)) or ""

    async def last_begun(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that was begun since it was last done, refused or not."""
        notes = await self._ledger.call(lambda to: to.steps(self._uuid))
        ends = [note for note in notes if note.step == step.value and note.state in {BEGUN, DONE}]
        return ends[-1].detail if ends and ends[-1].state == BEGUN else ""

    async def begin(self, step: ProvisioningStep, detail: str = "", writes: int = 0) -> None:
        """Record that a step is about to be done, and count the credential writes that it is."""
        event = RunEvent.WRITE if writes else RunEvent.NOTE
        await self._note(event, lambda to: to.begin(self._uuid, step.value, detail, writes))
        self._writes += writes

    async def refused(self, step: ProvisioningStep, reason: str, writes: int = 0) -> None:
        """Record that the board refused a step that was begun; its writes were none."""
        note = step.value, reason, writes
        await self._note(RunEvent.NOTE, lambda to: to.refused(self._uuid, *note))
        self._writes -= writes

    async def finish(self, step: ProvisioningStep, detail: str = "", **columns: str) -> None:
        """Record that a step was done, with its results (columns of the record)."""
        event = RunEvent.REGISTER if step is ProvisioningStep.REGISTER else RunEvent.NOTE
        await self._note(event, lambda to: to.finish(self._uuid, step.value, detail, **columns))
        self._update_record(columns)

    async def begin_registration(self, detail: str, method: str) -> None:
        """Record that the service is about to be given the board's key."""
        await self._note(
            RunEvent.NOTE, lambda to: to.begin_registration(self._uuid, _REGISTER, detail, method)
        )

    async def finish_registration(self, detail: str, method: str, **columns: str) -> None:
        """Record that the service took the board's key, with the results: it is the only one."""
        await self._note(
            RunEvent.REGISTER,
            lambda to: to.finish_registration(self._uuid, _REGISTER, detail, method, **columns),
        )
        self._update_record(columns)

    async def hold_device_id(self, method: str) -> None:
        """Record that the board has its device id, by a method that gives no service its key."""
        await self._note(RunEvent.NOTE, lambda to: to.hold_device_id(self._uuid, method))

    async def finish_key(self, detail: str, public_key: str, key_digest: str) -> None:
        """Record the board's new key in the goal's tag: the one before is none any more."""
        because = self._consent or "another was made in its place"
        key = public_key, key_digest, because
        step = ProvisioningStep.KEY.value
        await self._note(RunEvent.NOTE, lambda to: to.finish_key(self._uuid, step, detail, *key))
        new = {**dict.fromkeys(KEY_COLUMNS, ""), "public_key": public_key, "key_digest": key_digest}
        self._update_record(new)

    async def update(self, **columns: str) -> None:
        """Store the results so far of a step that is not yet done (columns of the record)."""
        await self._note(RunEvent.NOTE, lambda to: to.update(self._uuid, **columns))
        self._update_record(columns)

    async def consent(self, what: str) -> None:
        """Record what was allowed by name for this run, before it is done."""
        self._consent = what
        await self._note(RunEvent.NOTE, lambda to: to.consent(self._uuid, what))

    async def conclude(self, end: RunEnd, ended_at: datetime) -> None:
        """Record how the run ended, once, and release the board where it was claimed."""
        state = self._state
        self._enter(RunEvent.END)
        if state is RunState.ENDED:
            return
        run = replace(self._run, ended_at=ended_at, **asdict(end))
        if not state.is_claimed:
            await self._ledger.call(lambda ledger: ledger.record_run(run))
            return
        try:
            await self._ledger.call(lambda ledger: ledger.conclude(run))
        finally:
            await self._ledger.call(lambda ledger: ledger.release(run.uuid))

    @property
    def _uuid(self) -> str:
        return self._record.uuid

    async def _note(self, event: RunEvent, work: Callable[[Ledger], None]) -> None:
        self._enter(event)
        await self._ledger.call(work)

    def _require(self, event: RunEvent) -> RunState:
        """Return the state after an event. Raises IllegalTransition where none follows."""
        return TRANSITIONS[self._state, event]

    def _enter(self, event: RunEvent) -> None:
        self._state = self._require(event)

    def _update_record(self, columns: Mapping[str, str]) -> None:
        self._record = BoardRecord(**{**asdict(self._record), **columns})


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: columns of its record."""

    outcome: str
    step: str
    exit: int
    reason_code: str
    reason: str
    timings: str
