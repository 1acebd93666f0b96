"""What the ledger asks of a database, a file or a shared server, and the run of its migrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent.errors import AgentError, ResourceUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection


Rows = Sequence[Sequence[Any]]
Execute = Callable[[str, Mapping[str, object]], Rows]
"""Runs one statement with its `:names` filled in; returns the rows, () for a change."""


class DatabaseFailed(AgentError):
    """The database refused or cannot be reached; the message is its own, without values."""

    kind = "ledger"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the ledger cannot be used: {reason}",
            hint="what was done so far is kept: see that its disk has room, or that its server "
            "runs and is reached, then run the same command again",
        )
        self.reason = reason


class StationsAtWork(ResourceUnavailable):
    """Stations have claimed boards: the tables cannot be changed under them."""

    kind = "busy"


class Database(Protocol):
    """An open database. Its methods raise DatabaseFailed."""

    shared: bool
    """Whether other stations use it too, so that a row may be theirs."""
    session: int
    """A number that changes when the connection, and with it every lock of ours, was lost."""

    patience_s: float
    """How long one call may wait for others who use it."""

    def transaction(self, *, writes: bool = False) -> AbstractContextManager[Execute]:
        """Begin a transaction; it is on disk when the block ends, undone when the block raises.

        `writes` says that it changes something.
        """

    def version(self) -> str | None:
        """Return the newest migration that was run, None for an empty database."""

    def migrate(self) -> None:
        """Run the migrations that are missing. Raises StationsAtWork."""

    def migrated_copy(self, version: str | None) -> Database:
        """Return a copy with the newest tables of a database of a version; this one stays."""

    def keep_copy(self, version: str) -> Path | None:
        """Keep a copy of the file as it is; return its path. None: a server has its own backups."""

    def time_in(self, when: datetime) -> object:
        """Return an aware time as a column takes it."""

    def time_out(self, value: Any) -> datetime:
        """Return the time of a column's value, aware."""

    def try_lock(self, uuid: str) -> bool:
        """Lock a board for this process, as long as it lives; False where another one holds it."""

    def unlock(self, uuid: str) -> None:
        """Unlock a board."""

    def unclaimed(self, uuid: str) -> str:
        """Return the condition, in SQL, that nobody has claimed the board of a `uuid` column."""

    def first_open_change(self, execute: Execute) -> int | None:
        """Return a number below every change that is not yet on disk; None: there are none."""

    def others(self) -> Sequence[str]:
        """Return who else is connected to it now, as far as that is known."""

    def close(self) -> None:
        """Close it and release every lock. Raises nothing."""

    def abort(self) -> None:
        """Break the connection, from any thread, so that a call which waits for it fails."""


def upgrade(connection: Connection, version: str = "head") -> None:
    """Run the migrations that are missing up to a version, in the connection's transaction."""
    from alembic import command  # a ledger that is up to date does without it
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    configuration.attributes["connection"] = connection
    command.upgrade(configuration, version)
