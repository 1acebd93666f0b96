"""Open a ledger: where it is, who may read it, and whether its tables are up to date."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy import URL, Engine, create_engine, event, inspect, make_url, pool, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from agent.config.private import make_private_folder
from agent.errors import AgentError, UsageError
from agent.provisioning.ledger.schema import HEAD
from agent.provisioning.ledger.store import Ledger

_LOOPBACK = {"", "localhost", "127.0.0.1", "::1"}
_CONNECT_TIMEOUT_S = 10


class LedgerError(AgentError):
    """The ledger cannot be opened."""

    kind = "ledger"


class LedgerBusy(LedgerError):
    """Another bench on this host writes this SQLite ledger."""

    exit_code = 3
    kind = "busy"


def _utc_now() -> datetime:
    return datetime.now(UTC)


def open_ledger(
    address: str,
    station: str,
    *,
    password: str = "",
    writes: bool = True,
    now: Callable[[], datetime] = _utc_now,
) -> Ledger:
    """Open the ledger at `address`, a path (SQLite) or a postgresql:// URL without a password.

    `writes` False opens it to be read. Raises LedgerError, LedgerBusy, UsageError.
    """
    release = _nothing
    if "://" in address:
        engine = _postgresql(address, password)
    else:
        path = Path(address)
        _make_private(path)
        if writes:
            release = _lock(path)
        engine = _sqlite(path)
    try:
        _bring_up_to_date(engine)
    except BaseException as error:
        engine.dispose()
        release()
        if not isinstance(error, DBAPIError):
            raise
        raise LedgerError(
            f"the ledger {_shown(address)} cannot be opened: {str(error.orig).splitlines()[0]}",
            hint="check that it is a ledger of ours, that its server runs, and the password "
            "(CELLAGENT_LEDGER_PASSWORD)",
        ) from error
    return Ledger(engine, station, now, release)


def _nothing() -> None:
    """Let go of nothing: the ledger was not locked."""


def _postgresql(address: str, password: str) -> Engine:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise UsageError(f"{_shown(address)} is no ledger address") from error
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


def _sqlite(path: Path) -> Engine:
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=pool.NullPool)

    @event.listens_for(engine, "connect")
    def durable(connection: Any, _record: object) -> None:
        # No WAL: SQLite before 3.51.3 can damage one that two connections write at once, and
        # `provision status` reads while a bench writes. EXTRA syncs the folder as well.
        connection.execute("PRAGMA journal_mode=TRUNCATE")
        connection.execute("PRAGMA synchronous=EXTRA")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA busy_timeout=10000")

    return engine


def _make_private(path: Path) -> None:
    """Make folder and file for their owner alone before anything is in them."""
    try:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be written: {error.strerror}") from error


def _lock(path: Path) -> Callable[[], None]:
    """Hold the ledger for this process; the system lets go when the process ends, however."""
    file: IO[bytes] = os.fdopen(
        os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600), "r+b"
    )
    try:
        if os.name == "nt":
            import msvcrt

            getattr(msvcrt, "locking")(file.fileno(), getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009 - absent from the stubs here
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise LedgerBusy(
            f"another bench on this host writes {path}",
            hint="wait for it, or name another ledger (provisioning.ledger)",
        ) from error
    return file.close


def _bring_up_to_date(engine: Engine) -> None:
    """Run the migrations that are missing; alembic is imported only for that."""
    with engine.connect() as connection:
        if inspect(connection).has_table("alembic_version"):
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            if found == HEAD:
                return
            if found is not None and found > HEAD:
                raise LedgerError(
                    f"the ledger was written by a newer version (schema {found}, ours is {HEAD})",
                    hint="update cellagent on this station",
                )
    from alembic import command
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            # Two stations may start at once: the second waits here, then finds nothing to do.
            connection.execute(text("SELECT pg_advisory_xact_lock(1850885689)"))
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")


def _shown(address: str) -> str:
    """Return an address as it may be shown: whatever stands before an @ is left out."""
    scheme, found, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else address
