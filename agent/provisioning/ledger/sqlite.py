"""A ledger in a file, for one station at a time; others may read it meanwhile."""

from __future__ import annotations

import logging
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from agent.errors import ResourceUnavailable
from agent.files.paths import is_there
from agent.files.private_files import (
    FolderUnusable,
    make_private_folder,
    sync_folder,
    touch_private,
)
from agent.files.trusted_places import require_trusted_file, require_trusted_folder
from agent.provisioning.ledger import backend
from agent.provisioning.ledger.backend import DatabaseFailed, Execute, Rows
from at.ports.process_lock import HeldByAnother, ProcessLock

# No WAL: SQLite before 3.51.3 can damage one that two connections write at once, and `provision
# status` reads while a station writes. EXTRA syncs the folder as well.
_PRAGMAS = "journal_mode=TRUNCATE", "synchronous=EXTRA", "foreign_keys=ON", "busy_timeout=500"
_READER_PATIENCE_S = 30.0
_WRITER_PATIENCE_S = 600.0
"""Without WAL nothing is written while anybody reads: the boards wait for a reader that stays."""
_PAUSE_S = 0.1
"""Between two tries, in which the wait can be aborted; SQLite itself waits in each (ms above)."""
_NO_VALUES: Mapping[str, object] = {}
_NO_OTHER = "an empty one knows no key of the boards, so that a bench would replace them"
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_log = logging.getLogger(__name__)


class LedgerHeld(ResourceUnavailable):
    """Another station on this host writes this file."""

    kind = "busy"


class SqliteDatabase:
    """The file at `path`; `writes` makes it, private before anything is in it, and locks it for us.

    Not made where it is only to be read: where there is none, and for None, it is an empty database
    of our own, in memory, or in a deleted file where it is large.
    """

    shared = False
    session = 0

    def __init__(self, path: Path | None, *, writes: bool = False) -> None:
        self._path = path
        self.patience_s = _WRITER_PATIENCE_S if writes else _READER_PATIENCE_S
        self._limit_s = _READER_PATIENCE_S
        self._aborted = threading.Event()
        self._lock: ProcessLock | None = None
        try:
            if path is not None and writes:
                _make_folder_of(path)
                touch_private(path)
                self._lock = _locked(path)
            elif path is not None:
                require_trusted_folder(path.parent)
                if is_there(path):
                    require_trusted_file(path, path.stat())
        except OSError as error:
            raise DatabaseFailed(f"{path} cannot be written: {error.strerror}") from error
        try:
            with _failures(path):
                self._connection = _connected(path if path and is_there(path) else None)
        except BaseException:
            self._release_lock()
            raise

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Execute]:
        """Begin a transaction, or take part in the one that was begun.

        One that writes waits, at its end, for all who read.
        """
        within = self._connection.in_transaction
        if within:
            yield self._patiently
            return
        self._aborted.clear()
        self._limit_s = self.patience_s if writes else _READER_PATIENCE_S
        # At once, so that what follows waits for readers alone, never for one who waits for us.
        begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        with _failures(self._path):
            self._patiently(begin)
            try:
                yield self._patiently
                self._patiently("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _patiently(self, statement: str, values: Mapping[str, object] = _NO_VALUES) -> Rows:
        """Run a statement, again while another program has the file, up to a limit."""
        began, told = time.monotonic(), False
        while True:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                waited_s = time.monotonic() - began
                if not _is_busy(error) or waited_s > self._limit_s or self._aborted.wait(_PAUSE_S):
                    raise
            if not told:
                _log.warning("another program reads or writes %s: waiting for it", self._path)
                told = True

    def version(self) -> str | None:
        """Return the newest migration that was run."""
        with self.transaction() as execute:
            return _version(execute)

    def migrate(self, version: str | None = None) -> None:
        """Run the migrations that are missing: all of them, or none where this is cut short."""
        try:
            # A table that is made anew is dropped before: no reference may stop that.
            self._patiently("PRAGMA foreign_keys=OFF")
            self._patiently("BEGIN IMMEDIATE")
            found = _version(self._patiently)
            tables = backend.Tables(self._patiently, shared=False, are_new=found is None)
            backend.upgrade(tables, found, version)
            self._patiently("COMMIT")
            if self._path is not None:  # a copy is filled table by table, in any order
                self._patiently("PRAGMA foreign_keys=ON")
        except sqlite3.Error as error:
            raise _failed(error, self._path) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def keep_copy(self, version: str) -> Path | None:
        """Copy the ledger, whose tables are of a version, beside itself; return the copy's path."""
        if self._path is None:
            return None
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        copy = self._path.with_name(f"{self._path.name}.{version}-{now}")
        # Under a name of its own until it is whole: what a kill leaves is not taken for the copy.
        partial = copy.with_name(f"{copy.name}.partial")
        try:
            touch_private(partial)
            try:
                with _failures(self._path), closing(sqlite3.connect(partial)) as target:
                    self._connection.backup(target)
                partial.replace(copy)
                sync_folder(copy.parent)
            except BaseException:
                partial.unlink(missing_ok=True)
                copy.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise DatabaseFailed(f"its copy {copy} cannot be made: {error.strerror}") from error
        except DatabaseFailed as error:
            raise DatabaseFailed(f"its copy {copy} cannot be made: {error.reason}") from error
        return copy

    def migrated_copy(self, version: str | None) -> SqliteDatabase:
        """Return a temporary copy of this ledger with the newest tables; this one stays."""
        copy = SqliteDatabase(None)
        try:
            if version is not None:
                with _failures(self._path):
                    self._connection.backup(copy._connection)
            copy.migrate()
        except BaseException:
            copy.close()
            raise
        return copy

    def tables(self) -> Sequence[tuple[str, str]]:
        """Return the tables that hold records, each with its primary key."""
        query = (
            "SELECT tables.name, columns.name FROM sqlite_master AS tables "
            "JOIN pragma_table_info(tables.name) AS columns ON columns.pk = 1 "
            "WHERE tables.type = 'table' AND tables.name <> 'alembic_version'"
        )
        with self.transaction() as execute:
            return [(str(name), str(key)) for name, key in execute(query, {})]

    def fill(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert rows, each by the names of its columns."""
        with self.transaction(writes=True) as execute:
            for row in rows:
                values = ", ".join(f":{name}" for name in row)
                execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})", row)  # noqa: S608

    def time_in(self, when: datetime) -> object:
        """Return UTC as text."""
        return sqlite_time(when)

    def time_out(self, value: str) -> datetime:
        """Return the aware time of a text. Raises DatabaseFailed: somebody may have edited it."""
        try:
            when = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            reason = f"{str(value)[:40]!r} stands where a time belongs"
            raise DatabaseFailed(reason, way_out=_way_out_of_damage(self._path)) from None
        return when if when.tzinfo else when.replace(tzinfo=UTC)

    def try_lock(self, *names: str) -> Callable[[], int]:
        """Lock nothing: the whole file is ours."""
        return lambda: len(names)

    def lock(self, *names: str) -> None:
        """Lock nothing, as `try_lock`."""

    def unlock(self, _uuid: str) -> None:
        """Do nothing."""

    def unclaimed(self, _uuid: str) -> str:
        """Return the condition that is always true: the whole file is ours."""
        return "1 = 1"

    def first_open_change(self, _execute: Execute) -> int | None:
        """Return None: there is one writer, and what is not on disk is not seen."""
        return None

    def others(self) -> Sequence[str]:
        """Return nobody: a station that writes the file has its lock."""
        return ()

    def renew(self) -> None:
        """Do nothing: a file closes no connection."""

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()
        self._release_lock()

    def abort(self) -> None:
        """End the wait for another program: the call that waits fails."""
        self._aborted.set()

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _version(execute: Execute) -> str | None:
    if not execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'", {}):
        return None
    found = execute("SELECT version_num FROM alembic_version", {})
    return str(found[0][0]) if found else None


@contextmanager
def _failures(path: Path | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _failed(error, path) from error


def _failed(error: sqlite3.Error, path: Path | None) -> DatabaseFailed:
    """Return the failure of the file at `path`; a rerun does not help one that is damaged."""
    way_out = ""
    if _is_busy(error) and path is not None:
        named = shlex.join(["fuser", str(path)])
        way_out = f"another program keeps it locked: `{named}` names it; end it, or its change"
    elif _code(error) in _DAMAGED or str(error).startswith("no such "):  # a table, or its column
        way_out = _way_out_of_damage(path)
    elif _extended_code(error) == sqlite3.SQLITE_READONLY_DBMOVED and path is not None:
        way_out = f"{path} was moved, deleted or replaced while this bench was writing it: "
        way_out += f"put that file back, then run the same command again; {_NO_OTHER}"
    elif _code(error) == sqlite3.SQLITE_FULL and path is not None:
        shows = shlex.join(["df", "-h", str(path.parent)])
        way_out = f"free some space (`{shows}` shows how much is left), then run the same command "
        way_out += "again: what was done so far is kept"
    return DatabaseFailed(str(error), busy=_is_busy(error), way_out=way_out)


def _way_out_of_damage(path: Path | None) -> str:
    if path is None:
        return ""
    return f"{path} is damaged: keep a copy, and put its newest backup in its place; {_NO_OTHER}"


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: sqlite3.Error) -> int:
    return _extended_code(error) & 0xFF


def _extended_code(error: sqlite3.Error) -> int:
    # Errors of the module itself have no code.
    return getattr(error, "sqlite_errorcode", 0)


def _make_folder_of(path: Path) -> None:
    """Make the folder of a ledger. Raises FolderUnusable, UntrustedPlace."""
    try:
        make_private_folder(path.parent)
    except FolderUnusable as error:
        if path.exists():
            shows = f"`ls -ld {shlex.quote(str(path.parent))}` shows whose it is"
            error.hint = f"{error.mend or f'{shows}: make it writable again'}; {_NO_OTHER}"
        raise


def sqlite_time(when: datetime) -> str:
    """Return UTC as text, ISO 8601, which sorts by time."""
    return when.astimezone(UTC).isoformat(timespec="microseconds")


def _connected(path: Path | None) -> sqlite3.Connection:
    # One thread after the other uses it, never two at once: see AsyncLedger.
    connection = sqlite3.connect(
        path or "", timeout=_READER_PATIENCE_S, isolation_level=None, check_same_thread=False
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
            # No other file: that knows no key, so the bench would end the life of those it made.
            hint="wait for it; stations that work at once share a ledger: "
            "`cellagent config set provisioning.ledger postgresql://USER@HOST/NAME`",
        ) from held
