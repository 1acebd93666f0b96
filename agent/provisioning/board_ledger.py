"""The ledger for many tasks, and one board's part of it: its claim, record and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from agent.provisioning.board import BoardState, HeldCredential
from agent.provisioning.ca.certificates import key_fingerprint
from agent.provisioning.goal import Goal, RegistrationMethod
from agent.provisioning.ledger import (
    BoardRecord,
    KeyRecord,
    Ledger,
    LedgerReader,
    RunRecord,
    StepRecord,
)
from agent.provisioning.ledger.backend import DatabaseFailed
from agent.provisioning.ledger.records import BEGUN, DONE, FAILED, KEY_COLUMNS
from agent.provisioning.plan import BoardHistory, ProvisioningStep
from at.commands.credentials import CredentialType

T = TypeVar("T")

WRITING_STEPS = (
    ProvisioningStep.CLEAR,
    ProvisioningStep.CA_CHAIN,
    ProvisioningStep.KEY,
    ProvisioningStep.WRITE,
)
"""The steps that write credentials: each begins a note for one write, which names its place."""
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
        self._claimed = False
        self._ended = False
        self._consent = ""
        self._writes = 0

    @property
    def record(self) -> BoardRecord:
        """The board's record so far, with its key in the goal's tag."""
        return self._record

    @property
    def writes(self) -> int:
        """Credential writes of this run: each wears the modem's flash."""
        return self._writes

    def identify(self, board: BoardState, device_id: str) -> None:
        """Name the board of this run, as far as it has shown what it is; nothing is stored yet."""
        self._run = replace(
            self._run,
            uuid=board.uuid,
            imei=board.imei,
            firmware=board.firmware,
            device_id=device_id,
        )
        self._record = BoardRecord(board.uuid, device_id=device_id)

    async def claim(self, board: BoardState, *, takes_over: bool) -> None:
        """Claim the board for this station, and begin its run. Raises BoardBusy.

        With `takes_over` its device id is stored even where another board has it.
        """

        def claimed(ledger: Ledger) -> BoardRecord:
            record = ledger.claim(self._run, takes_over=takes_over)
            settle(ledger, board)
            return ledger.board(board.uuid, self._run.security_tag) or record

        record = await self._ledger.call(claimed)
        self._record = replace(record, device_id=self._run.device_id)
        self._claimed = True

    async def history(self, goal: Goal) -> BoardHistory:
        """Return what the ledger knows of the board that matters to its plan."""
        record = self._record
        return await self._ledger.call(
            lambda ledger: history_of(ledger, record.uuid, goal, record.device_id)
        )

    async def unfinished(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that an earlier run began and did not end, else ""."""
        uuid = self._record.uuid
        return await self._ledger.call(lambda ledger: ledger.unfinished(uuid, step.value)) or ""

    async def last_begun(self, step: ProvisioningStep) -> str:
        """Return the detail of a step that was begun since it was last done, refused or not."""
        uuid = self._record.uuid
        notes = await self._ledger.call(lambda ledger: ledger.steps(uuid))
        ends = [note for note in notes if note.step == step.value and note.state in {BEGUN, DONE}]
        return ends[-1].detail if ends and ends[-1].state == BEGUN else ""

    async def begin(self, step: ProvisioningStep, detail: str = "", writes: int = 0) -> None:
        """Record that a step is about to be done, and count the credential writes that it is."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.begin(uuid, step.value, detail, writes))
        self._writes += writes

    async def refused(self, step: ProvisioningStep, reason: str, writes: int = 0) -> None:
        """Record that the board refused a step that was begun; its writes were none."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.refused(uuid, step.value, reason, writes))
        self._writes -= writes

    async def finish(self, step: ProvisioningStep, detail: str = "", **columns: str) -> None:
        """Record that a step was done, with its results (columns of the record)."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.finish(uuid, step.value, detail, **columns))
        self._update_record(columns)

    async def finish_registration(self, detail: str, **columns: str) -> None:
        """Record that the service took the board's key, with the results: it is the only one."""
        uuid, step = self._record.uuid, ProvisioningStep.REGISTER.value
        await self._ledger.call(
            lambda ledger: ledger.finish_registration(uuid, step, detail, **columns)
        )
        self._update_record(columns)

    async def retire_others(self) -> None:
        """Record that the board's key is the only one of its device, as no registration does."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.retire_others(uuid))

    async def finish_key(self, detail: str, public_key: str, key_digest: str) -> None:
        """Record the board's new key in the goal's tag: the one before is none any more."""
        uuid, step = self._record.uuid, ProvisioningStep.KEY.value
        because = self._consent or "another was made in its place"
        await self._ledger.call(
            lambda ledger: ledger.finish_key(uuid, step, detail, public_key, key_digest, because)
        )
        new = {**dict.fromkeys(KEY_COLUMNS, ""), "public_key": public_key, "key_digest": key_digest}
        self._update_record(new)

    async def update(self, **columns: str) -> None:
        """Store the results so far of a step that is not yet done (columns of the record)."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.update(uuid, **columns))
        self._update_record(columns)

    async def consent(self, what: str) -> None:
        """Record what was allowed by name for this run, before it is done."""
        self._consent = what
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.consent(uuid, what))

    async def conclude(self, end: RunEnd, ended_at: datetime) -> None:
        """Record how the run ended, once, and release the board where it was claimed."""
        if self._ended:
            return
        self._ended = True
        run = replace(self._run, ended_at=ended_at, **asdict(end))
        if not self._claimed:
            await self._ledger.call(lambda ledger: ledger.record_run(run))
            return
        try:
            await self._ledger.call(lambda ledger: ledger.conclude(run))
        finally:
            await self._ledger.call(lambda ledger: ledger.release(run.uuid))

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


def settle(ledger: Ledger, board: BoardState) -> None:
    """Settle what the ledger left open and the modem's list of credentials tells, for a claim.

    A write at which a run was cut off was counted, and was perhaps not done. A key of an older
    ledger is in the tag under which the modem lists it.
    """
    for note in _not_done(ledger.steps(board.uuid), board.credentials):
        ledger.never_done(note, "the run was cut off before: the modem lists nothing of it")
    if any(held.type == CredentialType.CLIENT_PRIVATE_KEY for held in board.credentials):
        for key, tag in _tags_found(ledger.keys(board.uuid), board.credentials):
            ledger.adopt_key(board.uuid, key.id, tag)


def _not_done(
    notes: Sequence[StepRecord], credentials: Sequence[HeldCredential]
) -> list[StepRecord]:
    """Return the notes of writes that were begun and, by the modem's list, not done."""
    last = {note.step: note for note in notes if note.state != FAILED}
    writes = [step.value for step in WRITING_STEPS]
    return [
        note
        for step, note in last.items()
        if step in writes and note.state == BEGUN and note.run is not None
        if not _happened(note, credentials)
    ]


def _happened(note: StepRecord, credentials: Sequence[HeldCredential]) -> bool:
    place, _, digest = note.detail.partition(" ")
    listed = {f"{held.tag}:{held.type}": held.sha256.upper() for held in credentials}
    if note.step == ProvisioningStep.CLEAR.value:
        return place not in listed
    if note.step == ProvisioningStep.KEY.value:
        return f"{place}:{CredentialType.CLIENT_PRIVATE_KEY:d}" in listed
    return listed.get(place) == digest


def _tags_found(
    keys: Sequence[KeyRecord], credentials: Sequence[HeldCredential]
) -> list[tuple[KeyRecord, int]]:
    """Return the live keys of unknown tag that the modem lists, each with its tag."""
    live = [key for key in keys if key.retired_at is None]
    taken = {key.security_tag for key in live}
    listed = {
        held.sha256.upper(): held.tag
        for held in credentials
        if held.type == CredentialType.CLIENT_PRIVATE_KEY and held.tag not in taken
    }
    return [
        (key, listed[key.key_digest.upper()])
        for key in live
        if key.security_tag is None and key.key_digest.upper() in listed
    ]


def history_of(
    ledger: LedgerReader,
    uuid: str,
    goal: Goal,
    device_id: str,
    credentials: Sequence[HeldCredential] = (),
) -> BoardHistory:
    """Return what the ledger knows of a board that matters to its plan.

    `credentials` is what the modem lists, where nothing was settled by a claim.
    """
    record = ledger.board(uuid, goal.security_tag) or BoardRecord(uuid)
    if not record.public_key and credentials:
        for key, tag in _tags_found(ledger.keys(uuid), credentials):
            if tag == goal.security_tag:
                record = replace(record, **{name: getattr(key, name) for name in KEY_COLUMNS})
    registered_as = registration_name(goal.registration, device_id)
    begun = ledger.unfinished(uuid, ProvisioningStep.KEY.value)
    mode = ledger.unfinished(uuid, ProvisioningStep.OFFLINE.value)
    return BoardHistory(
        public_key=record.public_key,
        key_digest=record.key_digest,
        certificate=record.certificate,
        registered=record.registered_as == registered_as
        and (goal.registration is RegistrationMethod.CLAIM or _has_its_key(record)),
        key_begun=begun is not None and begun.partition(" ")[0] == str(goal.security_tag),
        mode_before=int(mode) if mode else None,
    )


def _has_its_key(record: BoardRecord) -> bool:
    """Whether the service took the board's key, not one that it had before."""
    return bool(record.public_key) and record.registered_key == key_fingerprint(record.public_key)


def registration_name(method: RegistrationMethod, device_id: str) -> str:
    """Return the ledger's name of a registration: its method, and the device that it made."""
    return f"{method.value} {device_id}"
