"""Ledgers as tests open them: two boards, one time, a run that begins; and those of old."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from msgspec.structs import replace

from agent.files.private_files import make_private_folder, touch_private
from agent.provisioning.ledger import (
    BoardBusy,
    BoardRecord,
    Ledger,
    LedgerReader,
    RunRecord,
    open_ledger,
)
from agent.provisioning.ledger.postgresql import PostgresqlDatabase
from agent.provisioning.ledger.records import Registration

LEDGERS = Path(__file__).parents[3] / "fixtures" / "ledgers"

UUID = "50503041-3633-4261-803d-1e2b8f70111a"
OTHER = "50503041-3633-4261-803d-1e2b8f70222b"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def opened(address: str, station: str = "one") -> Ledger:
    return open_ledger(address, station, now=lambda: NOW)


def boards_of(ledger: LedgerReader, device_id: str = "") -> list[BoardRecord]:
    """Return every board, or those that have a device id."""
    where = "WHERE device_id = :device_id OR :device_id = ''"
    return ledger.select(BoardRecord, where, {"device_id": device_id})


def registrations_of(ledger: LedgerReader, device_id: str) -> Sequence[Registration]:
    return ledger.know("", device_id)().registrations


def older_ledger(address: str, version: str, rows: sqlite3.Connection | None = None) -> None:
    """Write the ledger of a version, as its fixture has it or with the rows of another database."""
    with nullcontext(rows) if rows else closing(fixture(version)) as source:
        if "://" in address:
            _copy_to_server(source, address, version)
            return
        make_private_folder(Path(address).parent)
        touch_private(Path(address))
        with closing(sqlite3.connect(address)) as file:
            source.backup(file)


class InMemory(sqlite3.Connection):
    """A database that is closed when nobody has it any more: no file waits for that."""

    def __del__(self) -> None:
        self.close()


def fixture(version: str) -> sqlite3.Connection:
    """Return the ledger that the code of a version wrote; the file says which."""
    # The collector of garbage may close it, in whichever thread.
    connection = sqlite3.connect(":memory:", factory=InMemory, check_same_thread=False)
    connection.executescript((LEDGERS / f"{version}.sql").read_text())
    return connection


def _copy_to_server(source: sqlite3.Connection, address: str, version: str) -> None:
    database = PostgresqlDatabase(address, "")
    database.migrate(version)
    source.row_factory = sqlite3.Row
    with database.transaction() as execute:
        for table in ("boards", "steps"):
            for row in source.execute(f"SELECT * FROM {table}"):
                names = row.keys()
                values = ", ".join(f":{name}" for name in names)
                insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"
                aware = {
                    name: f"{row[name]}+00:00" if name in {"at", "updated_at"} else row[name]
                    for name in names
                }
                execute(insert, aware)
        execute("SELECT setval('steps_id_seq', (SELECT max(id) FROM steps))", {})
    database.close()


def run_of(uuid: str = UUID, **columns: Any) -> RunRecord:
    given = {"id": str(uuid4()), "began_at": NOW, "security_tag": 10} | columns
    return RunRecord(uuid=uuid, **given)


def until_free(address: str) -> None:
    """Wait until no station has a board: the server notices the end of one in its own time."""
    locks = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database "
        "WHERE datname = current_database() AND locktype = 'advisory'"
    )
    with psycopg.connect(address, autocommit=True) as connection:
        while connection.execute(locks).fetchone() != (0,):
            os.sched_yield()


def claimed_once_free(ledger: Ledger, run: RunRecord) -> None:
    """Claim what a station held that is gone: the server frees it when it notices, no sooner."""
    for _ in range(1000):
        try:
            ledger.lock(run)()
        except BoardBusy:
            os.sched_yield()
        else:
            ledger.begin_run(run)
            return
    raise AssertionError("the dead station still has the board")


def runs_once_lost(ledger: Ledger, uuid: str) -> Sequence[RunRecord]:
    """End the runs of a station that is gone, once the server has noticed; return the board's."""
    for _ in range(1000):
        ledger.end_lost_runs()
        runs = ledger.runs(uuid)
        if not any(run.outcome == "unfinished" for run in runs):
            return runs
        os.sched_yield()
    raise AssertionError("the dead station still has the board")


def ended(run: RunRecord, outcome: str, **columns: Any) -> RunRecord:
    return replace(run, outcome=outcome, ended_at=NOW, **columns)
