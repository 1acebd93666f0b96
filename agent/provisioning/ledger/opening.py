"""Opens a ledger: checks its address, its permissions, and the version of its tables."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from msgspec import Struct

from agent.errors import AgentError
from agent.extras import require
from agent.files.paths import named_path
from agent.provisioning.ledger import backend
from agent.provisioning.ledger.backend import Database, DatabaseFailed
from agent.provisioning.ledger.ledger import Ledger
from agent.provisioning.ledger.sqlite import SqliteDatabase


class LedgerError(AgentError):
    """The ledger cannot be opened."""

    kind = "ledger"


class Migration(Struct, frozen=True):
    """What was done to a ledger: its version before (None: it was empty) and now.

    `copy` is the file as it was, `others` who else was connected to its server.
    """

    before: str | None
    now: str
    copy: Path | None
    others: Sequence[str]


def open_ledger(
    address: str,
    station: str,
    *,
    password: str = "",
    writes: bool = True,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    before_change: Callable[[], object] = lambda: None,
    on_new: Callable[[str], object] = lambda _: None,
) -> Ledger:
    """Open the ledger at `address`, a path (SQLite) or a postgresql:// URL without a password.

    `writes` False opens it to be read: nothing of it changes, and older tables are read by a copy
    (see LedgerReader.older). Else a file of an older version is migrated, after a copy beside it;
    an older server is not. `before_change`, which may wait or raise, is called before tables are
    made or migrated, and before a file is made and locked; `on_new`, with the ledger's name for
    people, once its first tables are made. Raises LedgerError, LedgerHeld, UsageError.
    """
    opening = _opened(address, password, writes=writes, before_change=before_change)
    with opening as (database, named):
        found, newest = _versions(database)
        if not writes:
            return _to_read(database, found, newest, station, now)
        if found != newest:
            if database.shared and found is not None:
                raise LedgerError(
                    f"the ledger's tables are older than ours: schema {found}, not {newest}",
                    hint="`cellagent provision migrate`, once no station is at work",
                )
            before_change()
            _migrate(database, found)
            if found is None:
                on_new(named)
        return Ledger(database, station, now)


def _to_read(
    database: Database, found: str | None, newest: str, station: str, now: Callable[[], datetime]
) -> Ledger:
    if found == newest:
        return Ledger(database, station, now)
    copy = database.migrated_copy(found)
    database.close()
    return Ledger(copy, station, now, older=found or "")


def migrate_ledger(address: str, *, password: str = "") -> Migration:
    """Bring the tables of a ledger up to date; see open_ledger for its address.

    Raises LedgerError, LedgerHeld, StationsAtWork, UsageError: then nothing was changed.
    """
    with _opened(address, password, writes=True) as (database, _):
        found, newest = _versions(database)
        copy = _migrate(database, found) if found != newest else None
        others = database.others()
        database.close()
        return Migration(found, newest, copy, others)


def newest_version() -> str:
    """Return the newest migration, by the names of their files. Raises LedgerError."""
    if not (known := backend.migrations()):
        raise LedgerError(
            f"this installation has no migrations of the ledger: {backend.MIGRATIONS} holds none",
            hint="install cellagent again, unpacked, with its source files",
        )
    return max(known)


def load_driver(address: str) -> None:
    """Load the driver that the ledger's address needs. Raises MissingExtra."""
    if _is_shared(address):
        require("a ledger on PostgreSQL", "psycopg")
        import_module("agent.provisioning.ledger.postgresql")


def _is_shared(address: str) -> bool:
    return "://" in address


@contextmanager
def _opened(
    address: str, password: str, *, writes: bool, before_change: Callable[[], object] = lambda: None
) -> Iterator[tuple[Database, str]]:
    """Open a database, which has a name for people, and close it where the block raises.

    Raises LedgerError for its failures.
    """
    named = address
    check = "that you may write it, that its disk has room, and that it is a ledger of ours"
    try:
        database: Database
        if _is_shared(address):
            load_driver(address)
            from agent.provisioning.ledger.postgresql import PostgresqlDatabase
            from agent.provisioning.ledger.postgresql_address import shown

            named, check = shown(address), "that its server runs, its name, and its password"
            check += " (CELLAGENT_LEDGER_PASSWORD)"
            database = PostgresqlDatabase(address, password)
        else:
            if writes:
                before_change()
            database = SqliteDatabase(named_path(address), writes=writes)
        try:
            yield database, named
        except BaseException:
            database.close()
            raise
    except DatabaseFailed as error:
        raise LedgerError(
            f"the ledger {named} cannot be opened: {error.reason}",
            hint=error.way_out or f"check {check}",
        ) from error


def _versions(database: Database) -> tuple[str | None, str]:
    """Return the version of the tables, and our newest one. Raises LedgerError."""
    found, newest = database.version(), newest_version()
    if found is not None and found > newest:
        raise LedgerError(
            f"the ledger was written by a newer version (schema {found}, ours is {newest})",
            hint="this station needs a newer version of the program",
        )
    return found, newest


def _migrate(database: Database, found: str | None) -> Path | None:
    """Migrate a database of a version; return the copy that was made of it before."""
    copy = database.keep_copy(found) if found is not None else None
    try:
        database.migrate()
    except BaseException:
        if copy is not None:
            copy.unlink()  # nothing was changed
        raise
    return copy
