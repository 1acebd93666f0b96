"""The ledger: the record of each board, and the claim of a board by one station."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from agent.errors import ResourceUnavailable
from agent.provisioning.ledger.backend import Database, DatabaseFailed, Execute

BEGUN, DONE, REFUSED, FAILED = "begun", "done", "refused", "failed"
UNFINISHED = "unfinished"
"""The outcome of a board whose run is under way, or was cut off."""


class BoardBusy(ResourceUnavailable):
    """Another station works on this board."""

    kind = "busy"


@dataclass(frozen=True, slots=True)
class BoardRecord:
    """The ledger's record of a board; "" for an unknown value.

    `public_key` and `certificate` are PEM; `key_digest` is what the modem lists for the private
    key. `registered_key` is the SHA-256 of the key, as SPKI, that the service took,
    `registered_as` how and as which device, `request_id` its bulk request. `attestation` is the
    token that claims the device. `writes` counts credential writes.
    """

    uuid: str
    imei: str = ""
    device_id: str = ""
    serial: str = ""
    usb_place: str = ""
    slot: str = ""
    firmware: str = ""
    station: str = ""
    outcome: str = ""
    reason: str = ""
    public_key: str = ""
    key_digest: str = ""
    certificate: str = ""
    registered_key: str = ""
    registered_as: str = ""
    request_id: str = ""
    attestation: str = ""
    writes: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a board: `state` is begun, done, refused (so not done) or failed."""

    uuid: str
    at: datetime
    station: str
    step: str
    state: str
    detail: str


_BOARD = tuple(column.name for column in fields(BoardRecord))
_STEP = tuple(column.name for column in fields(StepRecord))
_TEXTS = tuple(name for name in _BOARD if name not in {"uuid", "writes", "updated_at"})
# All names in statements are those of the records' fields; all values are bound.
_SELECT_BOARD = f"SELECT {', '.join(_BOARD)} FROM boards"  # noqa: S608
_NEW_BOARD = (
    f"INSERT INTO boards ({', '.join(_BOARD)}) "  # noqa: S608
    f"VALUES ({', '.join(f':{name}' for name in _BOARD)}) ON CONFLICT DO NOTHING"
)
_SELECT_STEPS = f"SELECT {', '.join(_STEP)} FROM steps WHERE uuid = :uuid ORDER BY id"  # noqa: S608
_NEW_STEP = (
    "INSERT INTO steps (uuid, at, station, step, state, detail) "
    "VALUES (:uuid, :at, :station, :step, :state, :detail)"
)


class Ledger:
    """One open ledger. Every method returns after its change is on disk. Not for two threads."""

    def __init__(self, database: Database, station: str, now: Callable[[], datetime]) -> None:
        self.station = station
        self._database = database
        self._now = now
        self._claimed: dict[str, int] = {}
        """The claimed boards, each with the session of the database that holds its claim."""

    def close(self) -> None:
        """Release every claim and close the database."""
        self._claimed.clear()
        self._database.close()

    def claim(self, uuid: str, **identity: str) -> BoardRecord:
        """Claim the board for this station and store its `identity` (columns). Raises BoardBusy."""
        if uuid in self._claimed:
            raise BoardBusy(f"board {uuid} is on two ports of this station")
        if not self._database.try_lock(uuid):
            raise BoardBusy(f"board {uuid} is being worked on {self._holder(uuid)}")
        try:
            record = self._claim_row(uuid, identity)
        except BaseException:
            self._database.unlock(uuid)
            raise
        self._claimed[uuid] = self._database.session
        return record

    def release(self, uuid: str) -> None:
        """Release the board."""
        if self._claimed.pop(uuid, None) == self._database.session:
            self._database.unlock(uuid)

    def abort(self) -> None:
        """Abort, from any thread, the call that waits for the database: it fails."""
        self._database.abort()

    def begin(self, uuid: str, step: str, detail: str = "") -> None:
        """Record that a step is about to be done; one begun and not done may have happened."""
        with self._change(uuid) as execute:
            self._note(execute, uuid, step, BEGUN, detail)

    def refused(self, uuid: str, step: str, reason: str) -> None:
        """Record that the board refused a step that was begun: nothing of it was done."""
        with self._change(uuid) as execute:
            self._note(execute, uuid, step, REFUSED, reason)

    def finish(
        self, uuid: str, step: str, detail: str = "", writes: int = 0, **columns: str
    ) -> None:
        """Record that a step was done, with its results (columns of the board).

        `writes` is added to the board's count.
        """
        with self._change(uuid) as execute:
            self._note(execute, uuid, step, DONE, detail)
            self._set(execute, uuid, columns, writes)

    def update(self, uuid: str, **columns: str) -> None:
        """Store the results so far of a step that is not yet done (columns of the board)."""
        with self._change(uuid) as execute:
            self._set(execute, uuid, columns)

    def conclude(self, uuid: str, outcome: str, step: str, reason: str, writes: int) -> None:
        """Record how the board's run ended; `writes` are those not recorded before."""
        with self._change(uuid) as execute:
            if outcome not in {"done", "unchanged"}:
                self._note(execute, uuid, step, FAILED, reason)
            self._set(execute, uuid, {"outcome": outcome, "reason": reason}, writes)

    def board(self, uuid: str) -> BoardRecord | None:
        """Return the record of a board."""
        with self._database.transaction() as execute:
            rows = execute(f"{_SELECT_BOARD} WHERE uuid = :uuid", {"uuid": uuid})
        return self._record(rows[0]) if rows else None

    def boards(self) -> Sequence[BoardRecord]:
        """Return every board, the newest change first."""
        with self._database.transaction() as execute:
            rows = execute(f"{_SELECT_BOARD} ORDER BY updated_at DESC", {})
        return [self._record(row) for row in rows]

    def steps(self, uuid: str) -> Sequence[StepRecord]:
        """Return the steps of a board in the order in which they were recorded."""
        with self._database.transaction() as execute:
            rows = [
                dict(zip(_STEP, row, strict=True)) for row in execute(_SELECT_STEPS, {"uuid": uuid})
            ]
        return [StepRecord(**{**row, "at": self._database.time_out(row["at"])}) for row in rows]

    def unfinished(self, uuid: str, step: str) -> str | None:
        """Return the detail of a step that was begun and may have been done; None if there is none.

        A failure after the beginning leaves it open: what was sent may have arrived.
        """
        for note in reversed(self.steps(uuid)):
            if note.step == step and note.state != FAILED:
                return note.detail if note.state == BEGUN else None
        return None

    @contextmanager
    def _change(self, uuid: str) -> Iterator[Execute]:
        """Begin a transaction on a board. Raises DatabaseFailed where its claim was lost."""
        # Before a connection is opened anew, which may take long, for each board in turn.
        if self._claimed.get(uuid) != self._database.session:
            raise DatabaseFailed("its connection was lost, and this board's claim with it")
        with self._database.transaction() as execute:
            yield execute

    def _claim_row(self, uuid: str, identity: dict[str, str]) -> BoardRecord:
        with self._database.transaction() as execute:
            empty = {**dict.fromkeys(_TEXTS, ""), "writes": 0, **self._time()}
            execute(_NEW_BOARD, {**empty, "uuid": uuid})
        ours = " FOR UPDATE SKIP LOCKED" if self._database.shared else ""
        with self._database.transaction() as execute:
            rows = execute(f"{_SELECT_BOARD} WHERE uuid = :uuid{ours}", {"uuid": uuid})
            if not rows:
                raise BoardBusy(f"board {uuid} is being worked on at another station")
            # Its outcome so far is past: cut off from now on, it is neither done nor as it was.
            begun = {"station": self.station, "outcome": UNFINISHED, "reason": ""}
            self._set(execute, uuid, {**identity, **begun})
            return self._record(execute(f"{_SELECT_BOARD} WHERE uuid = :uuid", {"uuid": uuid})[0])

    def _note(self, execute: Execute, uuid: str, step: str, state: str, detail: str) -> None:
        values = {
            "uuid": uuid,
            "at": self._database.time_in(self._now()),
            "station": self.station,
            "step": step,
            "state": state,
            "detail": detail,
        }
        execute(_NEW_STEP, values)

    def _set(
        self, execute: Execute, uuid: str, columns: Mapping[str, str], writes: int = 0
    ) -> None:
        unknown = columns.keys() - set(_TEXTS)
        if unknown:
            raise ValueError(f"a board has no column {', '.join(sorted(unknown))}")
        changes = ", ".join(f"{name} = :{name}" for name in [*columns, "updated_at"])
        execute(
            f"UPDATE boards SET {changes}, "  # noqa: S608 - names of columns
            "writes = writes + :more WHERE uuid = :uuid",
            {**columns, **self._time(), "more": writes, "uuid": uuid},
        )

    def _time(self) -> dict[str, object]:
        return {"updated_at": self._database.time_in(self._now())}

    def _record(self, row: Sequence[Any]) -> BoardRecord:
        found = dict(zip(_BOARD, row, strict=True))
        return BoardRecord(**{**found, "updated_at": self._database.time_out(found["updated_at"])})

    def _holder(self, uuid: str) -> str:
        known = self.board(uuid)
        station = known.station if known is not None else ""
        return f"at station {station}" if station else "at another station"
