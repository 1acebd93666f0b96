"""The ledger for many tasks, and one board's part of it: its claim, record and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from typing import Any, TypeVar

from agent.provisioning.board import BoardLocation, BoardState
from agent.provisioning.ca.certificates import key_fingerprint
from agent.provisioning.goal import Goal, RegistrationMethod
from agent.provisioning.ledger import BoardRecord, Ledger
from agent.provisioning.ledger.backend import DatabaseFailed
from agent.provisioning.plan import BoardHistory, ProvisioningStep

T = TypeVar("T")

_CALL_TIMEOUT_S = 30.0
"""A call may wait for those of all other boards, and for a database that is busy."""
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
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                return await asyncio.wrap_future(call)
        except TimeoutError as error:
            self._ledger.abort()
            raise DatabaseFailed(f"it did not answer within {_CALL_TIMEOUT_S:.0f} s") from error

    def close(self) -> None:
        """Wait, in bounded time, for the calls that were begun; then close the ledger."""
        if wait([self._last], _CLOSE_TIMEOUT_S).not_done:
            self._ledger.abort()
        self._thread.shutdown(cancel_futures=True)
        self._ledger.close()


class BoardLedger:
    """One board's run in the ledger: each step is recorded before and after it is done.

    Until `claim` the record is empty, and nothing is recorded.
    """

    def __init__(self, ledger: AsyncLedger) -> None:
        self._ledger = ledger
        self._record = BoardRecord("")
        self._claimed = False
        self._writes = 0
        self._noted_writes = 0

    @property
    def record(self) -> BoardRecord:
        """The board's record so far."""
        return self._record

    @property
    def writes(self) -> int:
        """Credential writes of this run: each wears the modem's flash."""
        return self._writes

    def count_write(self) -> None:
        """Count a credential write; the next note that a step is done, or the end, records it."""
        self._writes += 1

    async def claim(self, board: BoardState, device_id: str, location: BoardLocation) -> None:
        """Claim the board for this station. Raises BoardBusy."""
        # Known already, so that a board which another station has is named as well.
        self._record = BoardRecord(board.uuid, device_id=device_id)
        self._record = await self._ledger.call(
            lambda ledger: ledger.claim(
                board.uuid,
                imei=board.imei,
                firmware=board.firmware,
                device_id=device_id,
                serial=location.serial,
                usb_place=location.usb_place,
                slot=location.slot,
            )
        )
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

    async def begin(self, step: ProvisioningStep, detail: str = "") -> None:
        """Record that a step is about to be done."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.begin(uuid, step.value, detail))

    async def refused(self, step: ProvisioningStep, reason: str) -> None:
        """Record that the board refused a step that was begun."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.refused(uuid, step.value, reason))

    async def finish(self, step: ProvisioningStep, detail: str = "", **columns: str) -> None:
        """Record that a step was done, with its results (columns of the record)."""
        uuid, writes = self._record.uuid, self._unnoted_writes()
        await self._ledger.call(
            lambda ledger: ledger.finish(uuid, step.value, detail, writes, **columns)
        )
        self._update_record(columns)

    async def update(self, **columns: str) -> None:
        """Store the results so far of a step that is not yet done (columns of the record)."""
        uuid = self._record.uuid
        await self._ledger.call(lambda ledger: ledger.update(uuid, **columns))
        self._update_record(columns)

    async def conclude(self, outcome: str, step: ProvisioningStep, reason: str) -> None:
        """Record how the run ended, and release the board; nothing where it was not claimed."""
        if not self._claimed:
            return
        uuid, writes = self._record.uuid, self._unnoted_writes()
        try:
            await self._ledger.call(
                lambda ledger: ledger.conclude(uuid, outcome, step.value, reason, writes)
            )
        finally:
            await self._ledger.call(lambda ledger: ledger.release(uuid))

    def _unnoted_writes(self) -> int:
        """Return the writes that the ledger does not count yet; they count as noted from now on."""
        new, self._noted_writes = self._writes - self._noted_writes, self._writes
        return new

    def _update_record(self, columns: dict[str, str]) -> None:
        self._record = BoardRecord(**{**asdict(self._record), **columns})


def history_of(ledger: Ledger, uuid: str, goal: Goal, device_id: str) -> BoardHistory:
    """Return what the ledger knows of a board that matters to its plan."""
    record = ledger.board(uuid) or BoardRecord(uuid)
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
