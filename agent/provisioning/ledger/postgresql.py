"""A ledger that several stations share: PostgreSQL, by SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from agent.errors import UsageError
from agent.provisioning.ledger.database import DatabaseFailed, Execute

_LOOPBACK = {"", "localhost", "127.0.0.1", "::1"}
_CONNECT_TIMEOUT_S = 10
# Numbers of ours in PostgreSQL's space of advisory locks; a board's hash stands beside the first.
_LOCK_CLASS = 0x6E524639
_MIGRATION_LOCK = 1850885689


class PostgresqlDatabase:
    """The database at `address`, which holds no password. Raises UsageError."""

    shared = True

    def __init__(self, address: str, password: str) -> None:
        self._engine = _engine(address, password)
        # Session locks live on this connection and die with it, however this process ends.
        self._session: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Begin a transaction."""
        with _failures(), self._engine.begin() as connection:

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
        """Run the migrations that are missing."""
        from agent.provisioning.ledger.migrating import upgrade

        with _failures(), self._engine.begin() as connection:
            # Two stations may start at once: the second waits here, then finds nothing to do.
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
            upgrade(connection)

    def time_in(self, when: datetime) -> object:
        """Return the time as it is: the column knows time zones."""
        return when

    def time_out(self, value: datetime) -> datetime:
        """Return the time as it is."""
        return value

    def try_lock(self, uuid: str) -> bool:
        """Take a board by an advisory lock of this process's session."""
        with _failures():
            if self._session is None:
                session = self._engine.connect()
                self._session = session.execution_options(isolation_level="AUTOCOMMIT")
            query = f"SELECT pg_try_advisory_lock({_LOCK_CLASS}, hashtext(:uuid))"
            return bool(self._session.execute(text(query), {"uuid": uuid}).scalar())

    def unlock(self, uuid: str) -> None:
        """Let go of a board."""
        if self._session is not None:
            with _failures():
                query = f"SELECT pg_advisory_unlock({_LOCK_CLASS}, hashtext(:uuid))"
                self._session.execute(text(query), {"uuid": uuid})

    def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._engine.dispose()


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        # The statement's text could hold a value; the first line of the driver's words does not.
        raise DatabaseFailed(str(error.orig).splitlines()[0]) from error


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
    options: dict[str, Any] = {"connect_timeout": _CONNECT_TIMEOUT_S}
    if password:
        options["password"] = password
    try:
        return create_engine(
            URL.create(
                "postgresql+psycopg", url.username, None, url.host, url.port, url.database, query
            ),
            connect_args=options,
            pool_pre_ping=True,
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            "a PostgreSQL ledger needs an extra", hint="pip install 'cellagent[postgres]'"
        ) from error


def shown(address: str) -> str:
    """Return an address as it may be shown: whatever stands before an @ is left out."""
    scheme, found, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else address
