"""The ledger for many tasks, and one board's part of it: its claim, record and steps."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from agent.provisioning.boards.board import BoardState
from agent.provisioning.ledger import BoardRecord, Ledger, RunRecord
from agent.provisioning.ledger.backend import BoardsLocked, DatabaseFailed
from agent.provisioning.ledger.reader import BoardKnowledge
from agent.provisioning.ledger.records import BEGUN, DONE, KEY_COLUMNS
from agent.provisioning.planning.goal import Goal
from agent.provisioning.planning.plan import BoardHistory, ProvisioningStep
from agent.provisioning.running.board_history import history_of, settlement
from agent.provisioning.running.run_state import TRANSITIONS, RunEvent, RunState

T = TypeVar("T")
Work = Callable[[Ledger], Callable[[], T] | None]
"""Asks the database for something; returns how to know the answer once it is there."""

_REGISTER = ProvisioningStep.REGISTER.value
_CLOSE_TIMEOUT_S = 10.0
_OPENING_TIMEOUT_S = 0.5


def _pause_after(took_s: float) -> float:
    """Return how long a message may wait for other boards, after one that took so long."""
    return min(took_s / 4, 0.02)


class AsyncLedger:
    """The ledger for many tasks: one call after the other, in a thread, since each is synced.

    Changes go together, in one transaction: those that came while another call was under way, and
    those for which nobody waits, which go with the next call, or alone after `alone_after_s`.
    Boards that one answer let go on ask for the next at nearly the same time: so that they share
    it, a message waits for `pause_after_s` of what the one before took, or until every claimed
    board waits for it.

    `opens` begins at once, in a thread of its own. What it raises, every call raises.
    """

    def __init__(
        self,
        opens: Callable[[], Ledger],
        alone_after_s: float = 1.0,
        pause_after_s: Callable[[float], float] = _pause_after,
    ) -> None:
        self._alone_after_s = alone_after_s
        self._pause_after_s = pause_after_s
        self._took_s = 0.0
        self._waiting = 0
        self._waiting_changed = threading.Condition()
        # One thread: a call whose task was cancelled still ends before the next one begins.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._changes: deque[tuple[Work[Any], Future[Any]]] = deque()
        self._due: asyncio.TimerHandle | None = None
        self._opening: Future[Ledger] = Future()
        self._last: Future[Any] = self._opening
        # Nobody who stops waits for a server that does not answer; what is cut off there is undone.
        threading.Thread(
            target=self._open, args=[opens], name="ledger-opening", daemon=True
        ).start()

    def _open(self, opens: Callable[[], Ledger]) -> None:
        try:
            ledger = opens()
        except BaseException as error:  # noqa: BLE001 - it is raised where the ledger is asked
            if self._opening.set_running_or_notify_cancel():
                self._opening.set_exception(error)
            return
        if self._opening.set_running_or_notify_cancel():
            self._opening.set_result(ledger)
        else:
            ledger.close()

    @property
    def is_open(self) -> bool:
        """Whether it was opened, so that a call waits for no more than its answer."""
        return self._opening.done() and self._opening.exception() is None

    async def opened(self) -> Ledger:
        """Wait until the ledger is open; return it, for its thread. Raises as `opens` does."""
        if not self._opening.done():
            await _ended(self._opening)
        return self._opening.result()

    async def call(self, work: Callable[[Ledger], T]) -> T:
        """Return the result of `work`. Raises DatabaseFailed where none comes."""
        ledger = await self.opened()
        self._go()
        call = self._last = self._thread.submit(work, ledger)
        return await self._answer(call, ledger)

    async def change(self, work: Work[T]) -> T:
        """Make a change after those that were noted; return its result, as `call`."""
        noted = self.note(work)
        return await self.kept(noted)

    def note(self, work: Work[T]) -> Future[T]:
        """Have a change made soon; `kept` waits for it."""
        result: Future[T] = Future()
        self._changes.append((work, result))
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(self._alone_after_s, self._go)
        return result

    async def kept(self, noted: Future[T]) -> T:
        """Wait until a change is on disk; return its result. Raises DatabaseFailed, as `call`."""
        ledger = await self.opened()
        if not noted.done():
            self._count_waiting(1)
            noted.add_done_callback(lambda _: self._count_waiting(-1))
            self._go()
        return await self._answer(noted, ledger)

    def _count_waiting(self, more: int) -> None:
        with self._waiting_changed:
            self._waiting += more
            self._waiting_changed.notify()

    def _go(self) -> None:
        """Have the changes made that were noted."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
            self._last = self._thread.submit(self._make_changes)

    def _make_changes(self) -> None:
        if not self._changes:
            return
        ledger = self._opening.result()
        with self._waiting_changed:
            self._waiting_changed.wait_for(
                lambda: self._waiting >= ledger.claims, self._pause_after_s(self._took_s)
            )
        began = time.monotonic()
        changes = [self._changes.popleft() for _ in range(len(self._changes))]
        done = ledger.together([work for work, _ in changes])
        for (_, result), value in zip(changes, done, strict=True):
            if isinstance(value, Exception):
                result.set_exception(value)
            else:
                result.set_result(value)
        self._took_s = time.monotonic() - began

    async def _answer(self, call: Future[T], ledger: Ledger) -> T:
        patience_s = ledger.patience_s  # for the calls of all other boards as well
        try:
            async with asyncio.timeout(patience_s):
                return await _ended(call)
        except TimeoutError as error:
            ledger.abort()
            raise DatabaseFailed(f"it did not answer within {patience_s:.0f} s") from error

    def close(self) -> None:
        """Wait, in bounded time, for the calls that were begun; then close the ledger."""
        wait([self._opening], _OPENING_TIMEOUT_S)
        self._opening.cancel()  # then it is closed once it is open
        is_open = not self._opening.cancelled() and self._opening.exception() is None
        self._go()
        if is_open and wait([self._last], _CLOSE_TIMEOUT_S).not_done:
            self._opening.result().abort()
        self._thread.shutdown(cancel_futures=True)
        for _, result in self._changes:
            result.cancel()
        if is_open:
            self._opening.result().close()


async def _ended(call: Future[T]) -> T:
    """Wait for what the thread does, which goes on where the wait is broken off."""
    waited = asyncio.wrap_future(call)
    # Where nobody waits any more, its failure is another call's to tell: asyncio would print it.
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(waited)


class BoardLedger:
    """One board's run in the ledger: each step is recorded before and after it is done.

    What must be on disk before a step is done is waited for, and with it all that was recorded
    before; that a step was done is recorded while the run goes on. `run` has just begun. Until
    `claim` the record is empty and no step is recorded; how the run ended is.
    """

    def __init__(self, ledger: AsyncLedger, run: RunRecord) -> None:
        self._ledger = ledger
        self._run = run
        self._record = BoardRecord("")
        self._state = RunState.OPENED
        self._consent = ""
        self._writes = 0
        self._sent: list[Future[None]] = []
        self._announced: tuple[ProvisioningStep, str] | None = None

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
            security_tag=None if board.module_key else self._run.security_tag,
        )
        self._record = BoardRecord(board.uuid, device_id=device_id)

    async def claim(self, board: BoardState, goal: Goal) -> BoardHistory:
        """Claim the board for this station, and begin its run; return what is known of it.

        Raises BoardBusy.
        """
        run, uuid = self._run, board.uuid
        self._require(RunEvent.CLAIM)
        try:
            known = await self._begun(run)
            if settled := settlement(known, board.credentials):

                def settle(ledger: Ledger) -> Callable[[], BoardKnowledge]:
                    for change in settled:
                        change(ledger)
                    return ledger.know(uuid, run.device_id, run.security_tag)

                known = await self._ledger.change(settle)
        except BaseException:
            self._ledger.note(lambda to: to.give_up(run))
            raise
        self._record = replace(known.record, device_id=run.device_id)
        self._enter(RunEvent.CLAIM)
        return history_of(known, goal)

    async def _begun(self, run: RunRecord) -> BoardKnowledge:
        """Lock the board and begin its run; return what is known of it. Raises BoardBusy."""
        try:
            return await self._ledger.change(lambda to: to.claim(run))
        except BoardsLocked:
            await self._ledger.change(lambda to: to.lock(run))  # tells who has it
            return await self._ledger.change(lambda to: to.begin_run(run))

    async def bind_label(self, allowed: frozenset[str]) -> str:
        """Bind the label that was scanned, if any, to the board; return what `allowed` allowed.

        Raises LabelTaken.
        """
        label = self._run.label
        if not label:
            return ""
        replaces = label in allowed
        return await self._ledger.change(
            lambda to: to.bind_label(self._uuid, label, replaces=replaces)
        )

    async def unfinished(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that an earlier run began and did not end, else ""."""
        return await self._ledger.call(lambda to: to.unfinished(self._uuid, step.value)) or ""

    async def last_begun(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that was begun since it was last done, refused or not."""
        notes = await self._ledger.call(lambda to: to.steps(self._uuid))
        ends = [note for note in notes if note.step == step.value and note.state in {BEGUN, DONE}]
        return ends[-1].detail if ends and ends[-1].state == BEGUN else ""

    async def begin(
        self,
        step: ProvisioningStep,
        detail: str = "",
        writes: int = 0,
        announces: tuple[ProvisioningStep, str] | None = None,
    ) -> None:
        """Record that a step is about to be done, and count the credential writes that it is.

        `announces` is a step behind it, one write, with its detail, whose beginning is recorded
        now. Never a key: one that is found in its place, where none was made, is another's.
        """
        self._enter(RunEvent.WRITE if writes else RunEvent.NOTE)
        if self._announced == (step, detail):
            self._announced = None
        else:
            self._send(lambda to: to.begin(self._uuid, step.value, detail, writes))
        if announces is not None:
            self._announced = announces
            self._send(lambda to: to.begin(self._uuid, announces[0].value, announces[1], 1))
        await self._kept()
        self._writes += writes

    def refused(self, step: ProvisioningStep, reason: str, writes: int = 0) -> None:
        """Record that the board refused a step that was begun; its writes were none."""
        note = step.value, reason, writes
        self._note(RunEvent.NOTE, lambda to: to.refused(self._uuid, *note))
        self._writes -= writes

    def finish(self, step: ProvisioningStep, detail: str = "", **columns: str) -> None:
        """Record that a step was done, with its results (columns of the record)."""
        event = RunEvent.REGISTER if step is ProvisioningStep.REGISTER else RunEvent.NOTE
        self._note(event, lambda to: to.finish(self._uuid, step.value, detail, **columns))
        self._update_record(columns)

    async def begin_registration(self, detail: str, method: str) -> None:
        """Record that the service is about to be given the board's key."""
        self._note(
            RunEvent.NOTE, lambda to: to.begin_registration(self._uuid, _REGISTER, detail, method)
        )
        await self._kept()

    def finish_registration(self, detail: str, method: str, **columns: str) -> None:
        """Record that the service took the board's key, with the results: it is the only one."""
        self._note(
            RunEvent.REGISTER,
            lambda to: to.finish_registration(self._uuid, _REGISTER, detail, method, **columns),
        )
        self._update_record(columns)

    def hold_device_id(self, method: str) -> None:
        """Record that the board has its device id, by a method that gives no service its key."""
        self._note(RunEvent.NOTE, lambda to: to.hold_device_id(self._uuid, method))

    def finish_key(self, detail: str, public_key: str, key_digest: str) -> None:
        """Record the board's new key in the goal's tag: the one before is none any more."""
        because = self._consent or "another was made in its place"
        key = public_key, key_digest, because
        step = ProvisioningStep.KEY.value
        self._note(RunEvent.NOTE, lambda to: to.finish_key(self._uuid, step, detail, *key))
        new = {**dict.fromkeys(KEY_COLUMNS, ""), "public_key": public_key, "key_digest": key_digest}
        self._update_record(new)

    def update(self, **columns: str) -> None:
        """Store the results so far of a step that is not yet done (columns of the record)."""
        self._note(RunEvent.NOTE, lambda to: to.update(self._uuid, **columns))
        self._update_record(columns)

    async def keep_attestation(self, attestation: str) -> None:
        """Store the token that claims the device, before the service gets it."""
        self.update(attestation=attestation)
        await self._kept()

    def consent(self, what: str) -> None:
        """Record what was allowed by name for this run: it is there before the next step begins."""
        self._consent = what
        self._note(RunEvent.NOTE, lambda to: to.consent(self._uuid, what))

    async def conclude(self, end: RunEnd, ended_at: datetime) -> None:
        """Record how the run ended, once, and release the board where it was claimed."""
        state = self._state
        self._enter(RunEvent.END)
        if state is RunState.ENDED:
            return
        if self._announced is not None:
            step = self._announced[0].value
            self._send(lambda to: to.refused(self._uuid, step, "the run ended before it", 1))
        run = replace(self._run, ended_at=ended_at, **asdict(end))
        if not state.is_claimed:
            self._send(lambda ledger: ledger.record_run(run))
            await self._kept()
            return

        def conclude(ledger: Ledger) -> None:
            ledger.conclude(run)
            ledger.release(run.uuid)

        self._send(conclude)
        try:
            await self._kept()
        except BaseException:
            self._ledger.note(lambda ledger: ledger.release(run.uuid))
            raise

    @property
    def _uuid(self) -> str:
        return self._record.uuid

    def _note(self, event: RunEvent, change: Work[None]) -> None:
        self._enter(event)
        self._send(change)

    def _send(self, change: Work[None]) -> None:
        """Have a change made, unless one before it was not made."""
        before = list(self._sent)

        def in_turn(ledger: Ledger) -> Callable[[], None] | None:
            for sent in before:
                if sent.done() and (error := sent.exception()) is not None:
                    raise error
            return change(ledger)

        self._sent.append(self._ledger.note(in_turn))

    async def _kept(self) -> None:
        """Wait until all is on disk that was recorded. Raises DatabaseFailed for what is not."""
        if self._sent:
            last, self._sent = self._sent[-1], []
            await self._ledger.kept(last)

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
