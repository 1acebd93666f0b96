"""A ledger in a file, for one station at a time; others may read it meanwhile.

By the standard library alone: a station that starts for one board does not wait for SQLAlchemy,
which is imported when the tables are to be made or changed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from agent.config.private_files import make_private_folder, touch_private
from agent.config.trusted_places import require_trusted_file, require_trusted_folder
from agent.errors import ResourceUnavailable
from agent.provisioning.ledger.backend import DatabaseFailed, Execute
from at.ports.process_lock import HeldByAnother, ProcessLock

# No WAL: SQLite before 3.51.3 can damage one that two connections write at once, and `provision
# status` reads while a station writes. EXTRA syncs the folder as well.
_PRAGMAS = "journal_mode=TRUNCATE", "synchronous=EXTRA", "foreign_keys=ON"
_PATIENCE_S = 10.0


class LedgerHeld(ResourceUnavailable):
    """Another station on this host writes this file."""

    kind = "busy"


class SqliteDatabase:
    """The file at `path`, made private before anything is in it; `writes` locks it for us."""

    shared = False
    session = 0
    patience_s = 30.0

    def __init__(self, path: Path, *, writes: bool) -> None:
        self._path = path
        self._lock: ProcessLock | None = None
        try:
            # A ledger that may only be read is read: a backup, a disk that is full or worn out.
            if writes or not os.access(path, os.R_OK):
                make_private_folder(path.parent)
                touch_private(path)
            else:
                require_trusted_folder(path.parent)
                require_trusted_file(path, path.stat())
            if writes:
                self._lock = _locked(path)
        except OSError as error:
            raise DatabaseFailed(f"{path} cannot be written: {error.strerror}") from error
        try:
            with _failures():
                self._connection = _connected(path)
        except BaseException:
            self._release_lock()
            raise

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Begin a transaction."""
        connection = self._connection
        with _failures():
            connection.execute("BEGIN")
            try:
                yield lambda statement, values: connection.execute(statement, values).fetchall()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def version(self) -> str | None:
        """Return the newest migration that was run."""
        with _failures():
            tables = "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
            if self._connection.execute(tables).fetchone() is None:
                return None
            found = self._connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(found[0]) if found else None

    def migrate(self) -> None:
        """Run the migrations that are missing: all of them, or none where this is cut short."""
        from sqlalchemy import create_engine, pool
        from sqlalchemy.exc import DBAPIError

        from agent.provisioning.ledger.backend import upgrade

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)

        engine = create_engine("sqlite://", creator=connect, poolclass=pool.NullPool)
        try:
            with engine.connect() as connection:
                # Two commands may come first to a ledger at once, and one of them may only want
                # to read: the second waits here, then finds nothing to do.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                upgrade(connection)
                connection.commit()
        except DBAPIError as error:
            raise DatabaseFailed(str(error.orig)) from error
        finally:
            engine.dispose()

    def time_in(self, when: datetime) -> object:
        """Return UTC as text, ISO 8601, which sorts by time."""
        return when.astimezone(UTC).isoformat(timespec="microseconds")

    def time_out(self, value: str) -> datetime:
        """Return the aware time of a text."""
        return datetime.fromisoformat(value)

    def try_lock(self, _uuid: str) -> bool:
        """Return True: the whole file is ours."""
        return True

    def unlock(self, _uuid: str) -> None:
        """Do nothing."""

    def unclaimed(self, _uuid: str) -> str:
        """Return the condition that is always true: the whole file is ours."""
        return "1 = 1"

    def first_open_change(self, _execute: Execute) -> int | None:
        """Return None: there is one writer, and what is not on disk is not seen."""
        return None

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()
        self._release_lock()

    def abort(self) -> None:
        """Do nothing: a file answers, or fails after its patience."""

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DatabaseFailed(str(error)) from error


def _connected(path: Path) -> sqlite3.Connection:
    # One thread after the other uses it, never two at once: see LedgerLine.
    connection = sqlite3.connect(
        path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _locked(path: Path) -> ProcessLock:
    """Lock the ledger for this process; the system unlocks it when the process ends, however."""
    try:
        return ProcessLock(path.with_name(path.name + ".lock"))
    except HeldByAnother as held:
        raise LedgerHeld(
            f"another bench on this host writes {path}: {held.holder}",
            hint="wait for it, or name another ledger (provisioning.ledger)",
        ) from held
