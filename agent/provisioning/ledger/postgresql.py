"""A ledger that several stations share: PostgreSQL, by SQLAlchemy Core."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from socket import SHUT_RDWR, socket
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from agent.errors import UsageError
from agent.provisioning.ledger.backend import DatabaseFailed, Execute, StationsAtWork
from agent.provisioning.ledger.sqlite import SqliteDatabase, sqlite_time

_LOOPBACK = {"", "localhost", "127.0.0.1", "::1"}
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
_OLDER_TABLES = ("boards", "uuid"), ("steps", "id")
"""The tables, with their keys, of every version before 0003."""
_PAGE = 1000
_TABLES_WITHIN_S = 10
_LOCK_NOT_AVAILABLE = "55P03"


class PostgresqlDatabase:
    """The database at `address`, which holds no password. Raises UsageError.

    One connection does everything: the locks of the boards live on it and die with it, so no
    change can be made after they are lost as though they were still held.
    """

    shared = True
    patience_s = 30.0

    def __init__(self, address: str, password: str) -> None:
        self._engine = _engine(address, password)
        self._connection: Connection | None = None
        self.session = 0

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Begin a transaction."""
        with self._begun() as connection:

            def execute(statement: str, values: Any) -> Any:
                result = connection.execute(text(statement), dict(values))
                return result.all() if result.returns_rows else ()

            yield execute

    def version(self) -> str | None:
        """Return the newest migration that was run."""
        with self.transaction() as execute:
            if execute("SELECT to_regclass('alembic_version')", {})[0][0] is None:
                return None
            found = execute("SELECT version_num FROM alembic_version", {})
        return str(found[0][0]) if found else None

    def migrate(self) -> None:
        """Run the migrations that are missing. Raises StationsAtWork."""
        from agent.provisioning.ledger.backend import upgrade

        with self._begun() as connection:
            # Two stations may start at once: the second waits here, then finds nothing to do.
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
            if connection.execute(text("SELECT to_regclass('boards')")).scalar() is not None:
                _require_nobody_at_work(connection)
            upgrade(connection)

    def migrated_copy(self, version: str | None) -> SqliteDatabase:
        """Return a copy in SQLite with the newest tables."""
        copy = SqliteDatabase(None)
        try:
            if version is not None:
                copy.migrate(version)
                for table, key in _OLDER_TABLES:
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
            return [f"{name or 'a program'} on {host}" for name, host in execute(query, {})]

    def _pages(self, table: str, key: str) -> Iterator[Sequence[Mapping[str, object]]]:
        """Yield the rows of a table in the order of its key, as SQLite has their times."""
        after: object = None
        while True:
            rest = "" if after is None else f"WHERE {key} > :after"
            query = f"SELECT * FROM {table} {rest} ORDER BY {key} LIMIT {_PAGE}"  # noqa: S608
            with self._begun() as connection:
                found = connection.execute(text(query), {} if after is None else {"after": after})
                rows = [
                    {
                        name: sqlite_time(value) if isinstance(value, datetime) else value
                        for name, value in row.items()
                    }
                    for row in found.mappings()
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

    def try_lock(self, uuid: str) -> bool:
        """Lock a board by an advisory lock of this process's session."""
        query = f"SELECT pg_try_advisory_lock({_LOCK_CLASS}, hashtext(:uuid))"
        with self.transaction() as execute:
            return bool(execute(query, {"uuid": uuid})[0][0])

    def unlock(self, uuid: str) -> None:
        """Unlock a board."""
        query = f"SELECT pg_advisory_unlock({_LOCK_CLASS}, hashtext(:uuid))"
        with self.transaction() as execute:
            execute(query, {"uuid": uuid})

    def unclaimed(self, uuid: str) -> str:
        """Return the condition that no session holds the board's lock."""
        return (
            f"NOT EXISTS (SELECT 1 FROM pg_locks WHERE {_ADVISORY} "  # noqa: S608
            f"AND classid::bigint = {_LOCK_CLASS} "
            f"AND objid::bigint = hashtext({uuid})::bigint & 4294967295)"
        )

    def first_open_change(self, execute: Execute) -> int | None:
        """Return the lowest number that a writer holds who has not committed yet."""
        query = (
            f"SELECT min(objid::bigint) FROM pg_locks WHERE {_ADVISORY} "  # noqa: S608
            f"AND classid::bigint = {_CHANGE_LOCK}"
        )
        found = execute(query, {})[0][0]
        return int(found) if found is not None else None

    def close(self) -> None:
        """Close the connection."""
        self._drop()
        self._engine.dispose()

    def abort(self) -> None:
        """Shut the connection's socket: a call that waits for the server fails."""
        connection = self._connection
        if connection is not None and not connection.closed and not connection.invalidated:
            driver: Any = connection.connection.driver_connection
            lost = OSError, self._engine.dialect.loaded_dbapi.Error  # by another who broke it off
            with contextlib.suppress(*lost), socket(fileno=os.dup(driver.fileno())) as end:
                end.shutdown(SHUT_RDWR)

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            with self._connection.begin():
                yield self._connection
        except DBAPIError as error:
            if error.connection_invalidated:
                self._drop()
                self.session += 1
            # The statement's text could hold a value; the driver's first line does not.
            raise DatabaseFailed(str(error.orig).splitlines()[0]) from error

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(DBAPIError):
                connection.close()


def _require_nobody_at_work(connection: Connection) -> None:
    """Lock the tables for this transaction. Raises StationsAtWork, DatabaseFailed."""
    connection.execute(text(f"SET LOCAL lock_timeout = '{_TABLES_WITHIN_S}s'"))
    try:
        connection.execute(text("LOCK TABLE boards, steps IN ACCESS EXCLUSIVE MODE"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") == _LOCK_NOT_AVAILABLE:
            raise DatabaseFailed(
                "another program has its tables open, nothing was changed"
            ) from error
        raise
    # Whoever claims from now on waits for us, and then finds that the tables are newer than it.
    claims = connection.execute(
        text(
            "SELECT boards.uuid, boards.station FROM pg_locks LEFT JOIN boards "  # noqa: S608
            "ON objid::bigint = hashtext(boards.uuid)::bigint & 4294967295 "
            f"WHERE {_ADVISORY} AND classid::bigint = {_LOCK_CLASS}"
        )
    )
    if names := [f"board {uuid or '?'} at station {station or '?'}" for uuid, station in claims]:
        raise StationsAtWork(
            f"stations are at work, nothing was changed: {', '.join(names)}",
            hint="wait until their trays are done, stop them, then run the same command again",
        )


def _engine(address: str, password: str) -> Engine:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise UsageError(f"{shown(address)} is no ledger address") from error
    if url.get_backend_name() != "postgresql":
        raise UsageError(
            f"a shared ledger is PostgreSQL, not {url.get_backend_name()}",
            hint="write postgresql://user@host/database, or a path for SQLite",
        )
    if url.password is not None:
        raise UsageError(
            "the ledger's address holds a password, which every user of this host could read",
            hint="take it out and set CELLAGENT_LEDGER_PASSWORD",
        )
    query = dict(url.query)
    # A host in the query is a socket's folder, or a name: both are judged like one in the address.
    host = str(query.get("host", url.host or ""))
    remote = host not in _LOOPBACK and not host.startswith("/")
    if remote and query.get("sslmode") != "verify-full":
        raise UsageError(
            f"the ledger on {host} would be reached without a verified connection",
            hint="add ?sslmode=verify-full (and sslrootcert=FILE) to its address",
        )
    options: dict[str, Any] = dict(_CONNECTION)
    if password:
        options["password"] = password
    try:
        return create_engine(
            URL.create(
                "postgresql+psycopg", url.username, None, url.host, url.port, url.database, query
            ),
            connect_args=options,
            poolclass=NullPool,
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            "a PostgreSQL ledger needs an extra", hint="pip install 'cellagent[postgres]'"
        ) from error


def shown(address: str) -> str:
    """Return an address without its user part, which may hold a secret."""
    scheme, found, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else address
