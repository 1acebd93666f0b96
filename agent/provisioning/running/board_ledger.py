"""One board's part of the ledger: its claim, its record and its steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from agent.provisioning.boards.board import BoardState
from agent.provisioning.ledger import BoardRecord, Ledger, RunRecord, StepRecord
from agent.provisioning.ledger.backend import BoardsLocked
from agent.provisioning.ledger.reader import BoardKnowledge, unfinished
from agent.provisioning.ledger.records import BEGUN, DONE, KEY_COLUMNS
from agent.provisioning.planning.goal import Goal
from agent.provisioning.planning.plan import BoardHistory, ProvisioningStep
from agent.provisioning.running.async_ledger import AsyncLedger, Work
from agent.provisioning.running.board_history import history_of, settlement
from agent.provisioning.running.run_state import TRANSITIONS, RunEvent, RunState

if TYPE_CHECKING:
    from agent.provisioning.running.outcome import Outcome

_REGISTER = ProvisioningStep.REGISTER.value


class BoardLedger:
    """One board's run in the ledger: each step is recorded before and after it is done.

    What must be on disk before a step is done is waited for, and with it all that was recorded
    before; that a step was done is recorded while the run goes on. `run` has just begun. Until
    `claim` the record is empty and no step is recorded; how the run ended is.
    """

    def __init__(self, ledger: AsyncLedger, run: RunRecord) -> None:
        self._ledger = ledger
        self._run = run
        self._began = time.monotonic()
        self.record = BoardRecord("")
        """The board's record so far, with its key in the goal's tag."""
        self.state = RunState.OPENED
        """How far the run has come."""
        self.writes = 0
        """Credential writes of this run: each wears the modem's flash."""
        self._consent = ""
        self._sent: list[Future[None]] = []
        self._announced: tuple[ProvisioningStep, str] | None = None

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
        self.record = BoardRecord(board.uuid, device_id=device_id)

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
        self.record = replace(known.record, device_id=run.device_id)
        self._enter(RunEvent.CLAIM)
        return history_of(known, goal, run.began_at)

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
        return unfinished(await self._notes(), step.value) or ""

    async def last_begun(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that was begun since it was last done, refused or not."""
        notes = await self._notes()
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
        self.writes += writes

    def refused(self, step: ProvisioningStep, reason: str, writes: int = 0) -> None:
        """Record that the board refused a step that was begun; its writes were none."""
        note = step.value, reason, writes
        self._note(RunEvent.NOTE, lambda to: to.refused(self._uuid, *note))
        self.writes -= writes

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
        """Record what else was allowed by name: it is there before the next step begins."""
        told = self._consent = "; ".join(filter(None, [self._consent, what]))
        self._note(RunEvent.NOTE, lambda to: to.consent(self._uuid, told))

    async def conclude(self, end: Outcome, timings: str = "") -> None:
        """Record how the run ended, once, and release the board where it was claimed.

        `timings` are those of the run's record. It took as long as it did, whoever sets the clock.
        """
        took = timedelta(seconds=time.monotonic() - self._began)
        state = self.state
        self._enter(RunEvent.END)
        if state is RunState.ENDED:
            return
        if self._announced is not None:
            step = self._announced[0].value
            self._send(lambda to: to.refused(self._uuid, step, "the run ended before it", 1))
        run = replace(
            self._run,
            ended_at=self._run.began_at + took,
            outcome=end.outcome,
            step=end.step,
            exit=end.exit,
            reason_code=end.reason_code,
            reason=end.reason,
            timings=timings,
        )
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
        return self.record.uuid

    async def _notes(self) -> Sequence[StepRecord]:
        return await self._ledger.call(lambda to: to.steps(self._uuid))

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
        return TRANSITIONS[self.state, event]

    def _enter(self, event: RunEvent) -> None:
        self.state = self._require(event)

    def _update_record(self, columns: Mapping[str, str]) -> None:
        self.record = BoardRecord(**{**asdict(self.record), **columns})
