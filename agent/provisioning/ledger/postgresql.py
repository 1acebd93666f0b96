"""A ledger that several stations share: PostgreSQL, by its driver."""

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, lru_cache, partial
from select import select
from socket import SHUT_RDWR, socket
from typing import Any

import psycopg

from agent.provisioning.ledger import backend
from agent.provisioning.ledger.postgresql_address import checked_address, shown
from agent.provisioning.ledger.sqlite import SqliteDatabase, sqlite_time
from at.protocol.counts import counted

# By libpq's names. A server that fell off the network is noticed, by the kernel, within 30 s.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,  # milliseconds
    "application_name": "cellagent",
}
# Numbers of ours in PostgreSQL's space of advisory locks; a board's hash stands beside the first.
_LOCK_CLASS = 0x6E524639
_MIGRATION_LOCK = 1850885689
_CHANGE_LOCK = 1850885690
"""Of migration 0003, whose trigger takes it."""
_ADVISORY = (
    "locktype = 'advisory' AND objsubid = 2 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Of pg_locks: advisory locks with two numbers, in this database."""
_UNLOCK = f"SELECT pg_advisory_unlock({_LOCK_CLASS}, hashtext(:name))"
_VERSION = "SELECT version_num FROM alembic_version"
_PAGE = 1000
_TABLES_WITHIN_S = 10
_ROOM = (
    "SELECT current_setting('max_connections')::int - count(*) "
    "- current_setting('superuser_reserved_connections')::int "
    "- COALESCE(current_setting('reserved_connections', true), '0')::int "
    "FROM pg_stat_activity WHERE datid IS NOT NULL"
)
"""How many connections more the server takes from who is not its superuser."""
_LITTLE_ROOM = 10
_MORE_ROOM = (
    "`max_connections` of the server must exceed the number of stations by 10: "
    "`ALTER SYSTEM SET max_connections = 200`, then restart the server"
)
_FULL = "too many clients", "connection slots are reserved"
_FULL_FOR = re.compile(r'too many connections for ((?:role|database) ".*")')
_NO_SPACE = "No space left on device"
_READ_ONLY = (
    "the server is a standby (`SELECT pg_is_in_recovery()`), and provisioning.ledger must name its "
    "primary; or it was set so (`SHOW default_transaction_read_only`)"
)
_WAYS_OUT: Mapping[type[psycopg.Error], str] = {
    psycopg.errors.ReadOnlySqlTransaction: _READ_ONLY,
    psycopg.errors.DiskFull: "the disk of its server is full: `df -h` there shows it; its "
    "administrator makes room, then run the same command again: what was done so far is kept",
}
_NAMED = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
"""A value's name in a statement; `::` is a cast."""
_log = logging.getLogger(__name__)
# It warns of what it ignores as it ends a message that failed, and that is raised and told here.
logging.getLogger("psycopg").setLevel(logging.ERROR)


class PostgresqlDatabase:
    """The database at `address`, which holds no password. Raises UsageError.

    One connection does everything: the locks of the boards live on it and die with it, so no
    change can be made after they are lost as though they were still held.
    """

    shared = True
    patience_s = 30.0

    def __init__(self, address: str, password: str) -> None:
        self._address = checked_address(address)
        self._options: dict[str, Any] = {
            **_CONNECTION,
            **({"password": password} if password else {}),
        }
        self._connection: psycopg.Connection | None = None
        self._begun: backend.Execute | None = None
        self._unlocking: list[str] = []
        self.session = 0

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[backend.Execute]:
        """Begin a transaction, or take part in the one that was begun.

        Its statements are one message, whose answer is waited for at the end, or where a row is
        looked at: a round trip for all.
        """
        if self._begun is not None:
            yield self._begun
            return
        with self._pipeline(writes=writes) as connection:
            # With nothing to roll back, the driver goes on to take what failed for prepared.
            self._begun = partial(_executed, connection, prepare=None if writes else False)
            try:
                yield self._begun
            finally:
                self._begun = None

    def version(self) -> str | None:
        """Return the newest migration that was run; warn where few stations more have room."""
        try:
            with self.transaction() as execute:
                connections, found = execute(_ROOM, {}), execute(_VERSION, {})
        except backend.DatabaseFailed as error:
            if isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                return None
            raise
        room = max(0, connections[0][0])
        if room < _LITTLE_ROOM:
            left = counted(room, "stations")
            _log.warning("%s has room for %s more: %s", shown(self._address), left, _MORE_ROOM)
        return _version_in(found)

    def migrate(self, version: str | None = None) -> None:
        """Run the migrations that are missing up to a version. Raises StationsAtWork."""
        with self._pipeline(writes=True) as connection:
            execute = partial(_executed, connection)
            # Two stations may start at once: the second waits here, then finds nothing to do.
            execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})", {})
            found = None
            if execute("SELECT to_regclass('alembic_version')", {})[0][0] is not None:
                found = _version_in(execute(_VERSION, {}))
                if found != (version or max(backend.migrations())):
                    _require_nobody_at_work(connection)
            tables = backend.Tables(execute, shared=True, are_new=found is None)
            backend.upgrade(tables, found, version)

    def migrated_copy(self, version: str | None) -> SqliteDatabase:
        """Return a copy in SQLite with the newest tables."""
        copy = SqliteDatabase(None)
        try:
            if version is not None:
                copy.migrate(version)
                for table, key in copy.tables():
                    for rows in self._pages(table, key):
                        copy.fill(table, rows)
            copy.migrate()
        except BaseException:
            copy.close()
            raise
        return copy

    def keep_copy(self, _version: str) -> None:
        """Keep nothing: the server's own backups are its operator's."""

    def others(self) -> Sequence[str]:
        """Return the names of the other programs that are connected, each with its host."""
        query = (
            "SELECT application_name, COALESCE(host(client_addr), 'this host') "
            "FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY 1, 2"
        )
        with self.transaction() as execute:
            rows = execute(query, {})
        return [f"{name or 'a program'} on {host}" for name, host in rows]

    def _pages(self, table: str, key: str) -> Iterator[Sequence[Mapping[str, object]]]:
        """Yield the rows of a table in the order of its key, as SQLite has their times."""
        after: object = None
        while True:
            rest = "" if after is None else f"WHERE {key} > :after"
            query = f"SELECT * FROM {table} {rest} ORDER BY {key} LIMIT {_PAGE}"  # noqa: S608
            with self._pipeline() as connection:
                found = connection.execute(_driver_form(query), {"after": after})
            names = [column.name for column in found.description or ()]
            rows = [
                {
                    name: sqlite_time(value) if isinstance(value, datetime) else value
                    for name, value in zip(names, row, strict=True)
                }
                for row in found
            ]
            if not rows:
                return
            yield rows
            after = rows[-1][key]

    def time_in(self, when: datetime) -> object:
        """Return the time as it is: the column knows time zones."""
        return when

    def time_out(self, value: datetime) -> datetime:
        """Return the time as it is."""
        return value

    def try_lock(self, *names: str) -> Callable[[], int]:
        """Lock boards by advisory locks of this process's session; see Database."""
        with self.transaction() as execute:
            rows = execute(f"SELECT {_locked(names)}", _numbered(names))
        return lambda: int(rows[0][0])

    def lock(self, *names: str) -> None:
        """Lock boards, or have the transaction fail; see Database."""
        all_of_them = f"CASE {_locked(names)} WHEN {len(names)} THEN 1 ELSE 0 END"
        with self.transaction() as execute:
            # What makes it fail: no other statement of ours divides.
            execute(f"SELECT 1 / {all_of_them}", _numbered(names))

    def unlock(self, name: str) -> None:
        """Unlock a board, once the transaction that was begun is on disk."""
        with self.transaction():
            self._unlocking.append(name)

    def unclaimed(self, uuid: str) -> str:
        """Return the condition that no session holds the board's lock."""
        return (
            f"NOT EXISTS (SELECT 1 FROM pg_locks WHERE {_ADVISORY} "  # noqa: S608
            f"AND classid::bigint = {_LOCK_CLASS} "
            f"AND objid::bigint = hashtext({uuid})::bigint & 4294967295)"
        )

    def first_open_change(self, execute: backend.Execute) -> int | None:
        """Return the lowest number that a writer holds who has not committed yet."""
        query = (
            f"SELECT min(objid::bigint) FROM pg_locks WHERE {_ADVISORY} "  # noqa: S608
            f"AND classid::bigint = {_CHANGE_LOCK}"
        )
        found = execute(query, {})[0][0]
        return int(found) if found is not None else None

    def renew(self) -> None:
        """Close a connection on which the server spoke unasked: it says so as it ends one."""
        if self._connection is not None and select([self._connection.fileno()], [], [], 0)[0]:
            self.close()
            self.session += 1

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def abort(self) -> None:
        """Shut the connection's socket: a call that waits for the server fails."""
        connection = self._connection
        if connection is not None:
            lost = OSError, psycopg.Error  # by another who broke it off
            with contextlib.suppress(*lost), socket(fileno=os.dup(connection.fileno())) as end:
                end.shutdown(SHUT_RDWR)

    @contextmanager
    def _pipeline(self, *, writes: bool = False) -> Iterator[psycopg.Connection]:
        """Send what the block executes as one message: a transaction where it `writes`."""
        with _failures():
            connection = self._connection = self._connection or self._connect()
            try:
                with connection.pipeline():
                    if writes:
                        connection.execute("BEGIN")
                    yield connection
                    if writes:
                        connection.execute("COMMIT")
                    for name in self._unlocking:
                        connection.execute(_driver_form(_UNLOCK), {"name": name})
            except psycopg.errors.InsufficientPrivilege as error:
                connection.rollback()
                raise backend.DatabaseFailed(
                    _first_line(error), way_out=_right(connection)
                ) from error
            except BaseException:
                if not connection.closed:
                    connection.rollback()
                raise
            finally:
                self._unlocking = []
                if connection.closed:
                    self.close()
                    self.session += 1

    def _connect(self) -> psycopg.Connection:
        try:
            return psycopg.connect(self._address, autocommit=True, **self._options)
        except psycopg.OperationalError as error:
            # What is refused before there is a connection has no code, only words.
            if limited := _FULL_FOR.search(str(error)):
                raise backend.DatabaseFailed(
                    f"no connection is left for {limited[1]}, and each station needs one",
                    way_out="as its server's administrator "
                    f"`ALTER {limited[1]} CONNECTION LIMIT -1`",
                ) from error
            if _NO_SPACE in str(error):
                raise psycopg.errors.DiskFull(*error.args) from error
            if not any(words in str(error) for words in _FULL):
                raise
            raise backend.DatabaseFailed(
                "its server has no connection left, and each station needs one", way_out=_MORE_ROOM
            ) from error


def _right(connection: psycopg.Connection) -> str:
    """Return what gives the connection's user the right to make our tables and to use them."""
    grant = psycopg.sql.SQL("ALTER DATABASE {} OWNER TO {}").format(
        psycopg.sql.Identifier(connection.info.dbname), psycopg.sql.Identifier(connection.info.user)
    )
    return (
        "the stations share one user, who owns the database: as its server's administrator "
        f"`{grant.as_string(connection)}`"
    )


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.DivisionByZero as error:
        raise backend.BoardsLocked("another process has locked a board") from error
    except psycopg.Error as error:
        way_out = _WAYS_OUT.get(type(error), "")
        raise backend.DatabaseFailed(_first_line(error), way_out=way_out) from error


def _locked(names: Sequence[str]) -> str:
    """Return what locks boards, in SQL, by their numbers: how many are ours then."""
    locked = str(len(names))
    for index in reversed(range(len(names))):
        lock = f"pg_try_advisory_lock({_LOCK_CLASS}, hashtext(:name{index}))"
        locked = f"CASE WHEN {lock} THEN {locked} ELSE {index} END"
    return locked


def _numbered(names: Sequence[str]) -> Mapping[str, str]:
    return {f"name{index}": name for index, name in enumerate(names)}


def _executed(
    connection: psycopg.Connection,
    statement: str,
    values: Mapping[str, object],
    *,
    prepare: bool | None = None,
) -> backend.Rows:
    return _Rows(connection.execute(_driver_form(statement), values, prepare=prepare))


class _Rows(Sequence[Sequence[Any]]):
    """The rows of a statement, which may be under way: waited for when they are looked at."""

    def __init__(self, cursor: psycopg.Cursor) -> None:
        self._cursor = cursor

    @cached_property
    def _rows(self) -> Sequence[Sequence[Any]]:
        return self._cursor.fetchall()

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)


def _version_in(rows: backend.Rows) -> str | None:
    return str(rows[0][0]) if rows else None


def _first_line(error: BaseException | None) -> str:
    """Return the driver's first line: the statement's text, behind it, could hold a value."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@lru_cache
def _driver_form(statement: str) -> bytes:
    """Return a statement with `:names` as the driver takes it."""
    return _NAMED.sub(r"%(\1)s", statement.replace("%", "%%")).encode()


def _require_nobody_at_work(connection: psycopg.Connection) -> None:
    """Lock the tables for this transaction. Raises StationsAtWork, DatabaseFailed."""
    connection.execute(f"SET LOCAL lock_timeout = '{_TABLES_WITHIN_S}s'")
    connection.execute("LOCK TABLE boards, steps IN ACCESS EXCLUSIVE MODE")
    # Whoever claims from now on waits for us, and then finds that the tables are newer than it.
    found = connection.execute(
        "SELECT boards.uuid, boards.station FROM pg_locks LEFT JOIN boards "  # noqa: S608
        "ON objid::bigint = hashtext(boards.uuid)::bigint & 4294967295 "
        f"WHERE {_ADVISORY} AND classid::bigint = {_LOCK_CLASS}"
    )
    try:
        claims = found.fetchall()
    except psycopg.errors.LockNotAvailable as error:
        raise backend.DatabaseFailed(
            "another program has its tables open, nothing was changed"
        ) from error
    names = [
        f"board {uuid} at station {station}" if uuid else "one of a run" for uuid, station in claims
    ]
    if names:
        raise backend.StationsAtWork(
            f"stations are at work, nothing was changed: {', '.join(names)}",
            hint="wait until their trays are done, stop them, then run the same command again",
        )
