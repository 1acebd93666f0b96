"""Opens a ledger: checks its address, its permissions, and the version of its tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from agent.errors import AgentError
from agent.provisioning.ledger.backend import Database, DatabaseFailed
from agent.provisioning.ledger.ledger import Ledger
from agent.provisioning.ledger.sqlite import SqliteDatabase

_VERSIONS = Path(__file__).parent / "migrations" / "versions"


class LedgerError(AgentError):
    """The ledger cannot be opened."""

    kind = "ledger"


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

    `writes` False opens it to be read. Raises LedgerError, LedgerHeld, UsageError.
    """
    named, check = address, "that you may write it, and that it is a ledger of ours"
    try:
        database: Database
        if "://" in address:
            from agent.provisioning.ledger.postgresql import PostgresqlDatabase, shown

            named, check = shown(address), "that its server runs, its name, and its password"
            check += " (CELLAGENT_LEDGER_PASSWORD)"
            database = PostgresqlDatabase(address, password)
        else:
            database = SqliteDatabase(Path(address), writes=writes)
        try:
            _bring_up_to_date(database)
            ledger = Ledger(database, station, now)
            if writes:
                ledger.end_lost_runs()
        except BaseException:
            database.close()
            raise
    except DatabaseFailed as error:
        raise LedgerError(
            f"the ledger {named} cannot be opened: {error.reason}",
            hint=f"check {check}",
        ) from error
    return ledger


def newest_version() -> str:
    """Return the newest migration, by the names of their files. Raises LedgerError."""
    names = [path.name for path in _VERSIONS.glob("[0-9]*_*.py")]
    if not names:
        raise LedgerError(
            f"this installation has no migrations of the ledger: {_VERSIONS} holds none",
            hint="install cellagent again, unpacked, with its source files",
        )
    return max(names).partition("_")[0]


def _bring_up_to_date(database: Database) -> None:
    found, newest = database.version(), newest_version()
    if found is not None and found > newest:
        raise LedgerError(
            f"the ledger was written by a newer version (schema {found}, ours is {newest})",
            hint="update cellagent on this station",
        )
    if found != newest:
        database.migrate()
