"""What the ledger asks of a database, a file or a shared server, and the run of its migrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from agent.errors import AgentError, ResourceUnavailable

Rows = Sequence[Sequence[Any]]
Execute = Callable[[str, Mapping[str, object]], Rows]
"""Runs one statement with its `:names` filled in; returns its rows, for which the first look waits.

A change has none to look at. What is looked at after the transaction has come with its end.
"""


MIGRATIONS = Path(__file__).parent / "migrations"
# By the name that other programs know (docs/reference/ledger.md).
_VERSION_TABLE = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


class DatabaseFailed(AgentError):
    """The database refused or cannot be reached; the message is its own, without values.

    `busy`: another program has it, so that whatever else is asked fails as well. `way_out` is what
    to try, where that is known.
    """

    kind = "ledger"

    def __init__(self, reason: str, *, busy: bool = False, way_out: str = "") -> None:
        super().__init__(
            f"the ledger cannot be used: {reason}",
            hint=way_out
            or "what was done so far is kept: see that its disk has room, or that its server "
            "runs and is reached, then run the same command again",
        )
        self.reason = reason
        self.busy = busy
        self.way_out = way_out


class BoardsLocked(DatabaseFailed):
    """Another process has locked one of the boards that a transaction was to lock."""


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

        `writes` says that it changes something. A block within another takes part in that one's.
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

    def try_lock(self, *names: str) -> Callable[[], int]:
        """Lock boards for this process, as long as it lives, one after the other until one is not.

        What is returned tells, once the transaction ended, how many are ours: another process has
        the one behind them.
        """

    def lock(self, *names: str) -> None:
        """Lock boards as `try_lock`, where a transaction was begun: it fails unless all are ours.

        Its end raises BoardsLocked then; of the locks, those that were taken before are ours.
        """

    def unlock(self, name: str) -> None:
        """Unlock a board, once the transaction that was begun is on disk."""

    def unclaimed(self, uuid: str) -> str:
        """Return the condition, in SQL, that nobody has claimed the board of a `uuid` column."""

    def first_open_change(self, execute: Execute) -> int | None:
        """Return a number below every change that is not yet on disk; None: there are none."""

    def others(self) -> Sequence[str]:
        """Return who else is connected to it now, as far as that is known."""

    def renew(self) -> None:
        """Have what follows use a new connection where the server has closed ours meanwhile."""

    def close(self) -> None:
        """Close it and release every lock. Raises nothing."""

    def abort(self) -> None:
        """Break the connection, from any thread, so that a call which waits for it fails."""


class Tables(Struct, frozen=True):
    """What a migration works on: `execute` is in its transaction, on a server where `shared`.

    `are_new`: nothing is in them, so that no row need be looked at and waited for.
    """

    execute: Execute
    shared: bool
    are_new: bool

    @property
    def time(self) -> str:
        """The type of a column that holds a time."""
        return "TIMESTAMP WITH TIME ZONE" if self.shared else "DATETIME"

    @property
    def number(self) -> str:
        """The type of a column that numbers the rows."""
        return "SERIAL" if self.shared else "INTEGER"


def migrations() -> Mapping[str, str]:
    """Return the modules of the migrations by their versions, in order: "0001" is the first."""
    names = sorted(path.stem for path in MIGRATIONS.glob("[0-9]*_*.py"))
    return {name.partition("_")[0]: f"{__package__}.migrations.{name}" for name in names}


def upgrade(tables: Tables, found: str | None, wanted: str | None) -> None:
    """Run the migrations after the version that was found, up to one (None: the newest)."""
    if tables.are_new:
        tables.execute(_VERSION_TABLE, {})
    for version, module in migrations().items():
        if (found or "") < version <= (wanted or version):
            import_module(module).upgrade(tables)
            tables.execute("DELETE FROM alembic_version", {})
            tables.execute("INSERT INTO alembic_version VALUES (:version)", {"version": version})
