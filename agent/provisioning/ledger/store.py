"""What the bench writes down about each board, and how a board is claimed for one station."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from agent.errors import AgentError
from agent.provisioning.ledger.schema import boards, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A number of ours in PostgreSQL's space of advisory locks; the board's hash stands beside it.
_LOCK_CLASS = 0x6E524639

BEGUN, DONE, REFUSED, FAILED = "begun", "done", "refused", "failed"


class BoardBusy(AgentError):
    """Another station works on this board."""

    kind = "busy"


@dataclass(frozen=True, slots=True)
class BoardRecord:
    """What the ledger knows of a board; "" where it knows nothing.

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


class Ledger:
    """One open ledger. Every method returns after its change is on disk. Not for two threads."""

    def __init__(
        self, engine: Engine, station: str, now: Callable[[], datetime], close: Callable[[], None]
    ) -> None:
        self.station = station
        self._engine = engine
        self._now = now
        self._close = close
        self._claimed: set[str] = set()
        self._shared = engine.dialect.name == "postgresql"
        # Session locks live on this connection and die with it, however this process ends.
        self._session: Connection | None = None

    def close(self) -> None:
        """Give every claim back and close the connections."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._claimed.clear()
        self._engine.dispose()
        self._close()

    def claim(self, uuid: str, **identity: str) -> BoardRecord:
        """Take the board for this station; keep `identity` with it. Raises BoardBusy."""
        if uuid in self._claimed:
            raise BoardBusy(f"board {uuid} is on two ports of this station")
        if self._shared and not self._try_session_lock(uuid):
            raise BoardBusy(f"board {uuid} is being worked on {self._holder(uuid)}")
        try:
            record = self._claim_row(uuid, identity)
        except BaseException:
            self._session_unlock(uuid)
            raise
        self._claimed.add(uuid)
        return record

    def release(self, uuid: str) -> None:
        """Give the board back."""
        self._claimed.discard(uuid)
        self._session_unlock(uuid)

    def begin(self, uuid: str, step: str, detail: str = "") -> None:
        """Note that a step is about to be done; what is begun and not done may have happened."""
        with self._transaction() as connection:
            self._note(connection, uuid, step, BEGUN, detail)

    def refused(self, uuid: str, step: str, reason: str) -> None:
        """Note that the board refused a step that was begun: nothing of it was done."""
        with self._transaction() as connection:
            self._note(connection, uuid, step, REFUSED, reason)

    def finish(self, uuid: str, step: str, detail: str = "", **learned: str | int) -> None:
        """Note that a step was done, and what was learned by it (columns of the board)."""
        with self._transaction() as connection:
            self._note(connection, uuid, step, DONE, detail)
            self._set(connection, uuid, learned)

    def learn(self, uuid: str, **learned: str | int) -> None:
        """Keep what a step that is not yet done has shown so far (columns of the board)."""
        with self._transaction() as connection:
            self._set(connection, uuid, learned)

    def conclude(self, uuid: str, outcome: str, step: str, reason: str, writes: int) -> None:
        """Note how the board's run ended; `writes` is added to the board's count."""
        with self._transaction() as connection:
            if outcome not in {"done", "unchanged"}:
                self._note(connection, uuid, step, FAILED, reason)
            self._set(
                connection,
                uuid,
                {"outcome": outcome, "reason": reason, "writes": boards.c.writes + writes},
            )

    def board(self, uuid: str) -> BoardRecord | None:
        """Return what is known of a board."""
        with self._transaction() as connection:
            row = connection.execute(select(boards).where(boards.c.uuid == uuid)).first()
        return BoardRecord(**row._mapping) if row is not None else None

    def boards(self) -> Sequence[BoardRecord]:
        """Return every board, the newest change first."""
        with self._transaction() as connection:
            rows = connection.execute(select(boards).order_by(boards.c.updated_at.desc())).all()
        return [BoardRecord(**row._mapping) for row in rows]

    def steps(self, uuid: str) -> Sequence[StepRecord]:
        """Return the steps of a board in the order in which they were noted."""
        columns = [column for column in steps.c if column.name != "id"]
        query = select(*columns).where(steps.c.uuid == uuid).order_by(steps.c.id)
        with self._transaction() as connection:
            return [StepRecord(**row._mapping) for row in connection.execute(query)]

    def unfinished(self, uuid: str, step: str) -> str | None:
        """Return the detail of a step that was begun and may have been done; None if there is none.

        A failure after the beginning leaves it open: what was sent may have arrived.
        """
        for note in reversed(self.steps(uuid)):
            if note.step == step and note.state != FAILED:
                return note.detail if note.state == BEGUN else None
        return None

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            # The statement's text could hold a value; the driver's own words do not.
            raise AgentError(
                f"the ledger cannot be used: {str(error.orig).splitlines()[0]}",
                hint="what was done so far is kept; run the same command again",
            ) from error

    def _claim_row(self, uuid: str, identity: dict[str, str]) -> BoardRecord:
        try:
            with self._transaction() as connection:
                connection.execute(insert(boards).values(uuid=uuid, updated_at=self._now()))
        except IntegrityError:
            pass  # it is known already
        query = select(boards).where(boards.c.uuid == uuid)
        with self._transaction() as connection:
            if self._shared:
                query = query.with_for_update(skip_locked=True)
            row = connection.execute(query).first()
            if row is None:
                raise BoardBusy(f"board {uuid} is being worked on at another station")
            self._set(connection, uuid, {**identity, "station": self.station})
        return BoardRecord(**{**row._mapping, **identity, "station": self.station})

    def _note(self, connection: Connection, uuid: str, step: str, state: str, detail: str) -> None:
        connection.execute(
            insert(steps).values(
                uuid=uuid,
                at=self._now(),
                station=self.station,
                step=step,
                state=state,
                detail=detail,
            )
        )

    def _set(self, connection: Connection, uuid: str, values: dict[str, Any]) -> None:
        changed = {**values, "updated_at": self._now()}
        connection.execute(update(boards).where(boards.c.uuid == uuid).values(**changed))

    def _try_session_lock(self, uuid: str) -> bool:
        if self._session is None:
            self._session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        key = func.hashtext(uuid)
        query = select(func.pg_try_advisory_lock(text(str(_LOCK_CLASS)), key))
        return bool(self._session.execute(query).scalar())

    def _session_unlock(self, uuid: str) -> None:
        if self._session is not None:
            key = func.hashtext(uuid)
            self._session.execute(select(func.pg_advisory_unlock(text(str(_LOCK_CLASS)), key)))

    def _holder(self, uuid: str) -> str:
        known = self.board(uuid)
        station = known.station if known is not None else ""
        return f"at station {station}" if station else "at another station"
