"""The ledger keeps every step, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
from postgres import postgres_cluster

from agent.errors import UsageError
from agent.provisioning.ledger import (
    BoardBusy,
    BoardRecord,
    Ledger,
    LedgerError,
    LedgerHeld,
    StepRecord,
    open_ledger,
)
from agent.provisioning.ledger.database import DatabaseFailed

UUID = "50503041-3633-4261-803d-1e2b8f70111a"
OTHER = "50503041-3633-4261-803d-1e2b8f70222b"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with postgres_cluster() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "state" / "ledger.sqlite")
    url: str = request.getfixturevalue("cluster")
    name = f"ledger_{os.getpid()}_{abs(hash(request.node.name)) % 10**8}"
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


def opened(address: str, station: str = "one") -> Ledger:
    return open_ledger(address, station, now=lambda: NOW)


@pytest.mark.contract("C10")
def test_what_was_learned_is_there_after_the_ledger_was_closed(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID, imei="350457791234567", slot="A1")
    ledger.begin(UUID, "key")
    ledger.finish(UUID, "key", "made on the modem", public_key="PEM")
    ledger.conclude(UUID, "failed", "register", "the service said no", 2)
    ledger.close()
    ledger = opened(address)
    record = ledger.board(UUID)
    assert record is not None
    assert (record.public_key, record.slot, record.outcome, record.writes) == (
        "PEM",
        "A1",
        "failed",
        2,
    )
    assert [(step.step, step.state) for step in ledger.steps(UUID)] == [
        ("key", "begun"), ("key", "done"), ("register", "failed"),
    ]  # fmt: skip
    assert ledger.board(OTHER) is None
    ledger.close()


def test_a_step_that_was_begun_and_not_done_is_known(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    assert ledger.unfinished(UUID, "key") is None
    ledger.begin(UUID, "key")
    assert ledger.unfinished(UUID, "key") == ""
    ledger.finish(UUID, "key")
    assert ledger.unfinished(UUID, "key") is None
    ledger.close()


def test_one_board_on_two_ports_is_worked_on_once(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    with pytest.raises(BoardBusy, match="two ports"):
        ledger.claim(UUID)
    ledger.release(UUID)
    ledger.claim(UUID)
    ledger.close()


def test_writes_add_up_over_runs_those_of_a_run_that_was_cut_off_too(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    ledger.finish(UUID, "ca-chain", "", 1)
    ledger.release(UUID)  # cut off here
    ledger.claim(UUID)
    ledger.finish(UUID, "key", "", 1)
    ledger.conclude(UUID, "done", "restore", "", 1)
    ledger.conclude(UUID, "unchanged", "restore", "", 0)
    record = ledger.board(UUID)
    assert record is not None
    assert record.writes == 3
    ledger.close()


def test_a_board_is_unfinished_from_its_claim_until_its_run_has_ended(address: str) -> None:
    ledger = opened(address)
    assert ledger.claim(UUID).outcome == "unfinished"
    ledger.conclude(UUID, "done", "proof", "", 0)
    ledger.release(UUID)
    again = ledger.claim(UUID)
    assert (again.outcome, again.reason) == ("unfinished", "")
    ledger.close()


def test_a_claim_ends_with_its_connection_and_nothing_is_noted_after_it(cluster: str) -> None:
    """Whatever the pool could open again: the lock is gone, another station may have the board."""
    import psycopg

    first = opened(cluster)
    first.claim(UUID)
    first.begin(UUID, "key")
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(DatabaseFailed):
        first.finish(UUID, "key", public_key="PEM")
    second = opened(cluster, "two")
    second.claim(UUID)
    with pytest.raises(DatabaseFailed, match="claim"):
        first.learn(UUID, public_key="PEM")
    first.release(UUID)
    with pytest.raises(BoardBusy, match="station two"):
        first.claim(UUID)
    second.release(UUID)
    assert first.claim(UUID).public_key == ""
    first.close()
    second.close()


def test_a_call_that_waits_for_a_frozen_server_can_be_broken_off(cluster: str) -> None:
    ledger = opened(cluster)
    ledger.claim(OTHER)
    with opened_lock(cluster), ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(ledger.begin, OTHER, "key")
        while not waits_for_the_lock(cluster):
            os.sched_yield()
        ledger.abort()
        with pytest.raises(DatabaseFailed):
            waiting.result(30)
    ledger.close()


@contextmanager
def opened_lock(cluster: str) -> Iterator[None]:
    """Hold the table of the steps, as somebody's open transaction may."""
    import psycopg

    with psycopg.connect(cluster) as connection:
        connection.execute("LOCK TABLE steps IN ACCESS EXCLUSIVE MODE")
        yield


def waits_for_the_lock(cluster: str) -> bool:
    import psycopg

    with psycopg.connect(cluster, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return bool(row and row[0])


# Another station as a process of its own: it claims, says so, and waits to be killed.
STATION = """
import sys
from agent.provisioning.ledger import open_ledger, BoardBusy
ledger = open_ledger(sys.argv[1], "two")
try:
    ledger.claim(sys.argv[2]); print("claimed", flush=True)
except BoardBusy as busy:
    print(busy, flush=True); sys.exit(3)
sys.stdin.read()
"""


def test_two_stations_never_have_one_board_and_a_dead_one_lets_go(cluster: str) -> None:
    first = opened(cluster)
    with subprocess.Popen(
        [sys.executable, "-c", STATION, cluster, UUID],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as station:  # fmt: skip
        assert station.stdout is not None
        assert station.stdout.readline() == "claimed\n"
        with pytest.raises(BoardBusy, match="station two"):
            first.claim(UUID)
        first.claim(OTHER)
        station.kill()
        station.wait()
    # The server frees the lock when it notices the lost session; that is an event of its own.
    for _ in range(1000):
        try:
            first.claim(UUID)
            break
        except BoardBusy:
            os.sched_yield()
    else:
        pytest.fail("the dead station still has the board")
    first.close()


def test_a_second_bench_on_the_same_file_is_told_so_and_reading_is_not_kept_waiting(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    first = opened(path)
    first.claim(UUID)
    with pytest.raises(LedgerHeld, match=rf"another bench on this host .*\(PID {os.getpid()}\)"):
        opened(path)
    reader = open_ledger(path, "reader", writes=False)
    assert [record.uuid for record in reader.boards()] == [UUID]
    reader.close()
    first.close()
    opened(path).close()


def test_a_ledger_that_may_only_be_read_is_read_and_nothing_about_it_changes(
    tmp_path: Path,
) -> None:
    """A backup, or a disk that its system has made read-only."""
    path = tmp_path / "backup" / "ledger.sqlite"
    ledger = opened(str(path))
    ledger.claim(UUID)
    ledger.close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    before = path.stat()
    reader = open_ledger(str(path), "reader", writes=False)
    assert [record.uuid for record in reader.boards()] == [UUID]
    reader.close()
    assert (path.stat().st_mtime_ns, path.stat().st_mode) == (before.st_mtime_ns, before.st_mode)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o500
    path.parent.chmod(0o700)


def test_the_file_is_private_from_the_first_moment(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = opened(str(tmp_path / "new" / "ledger.sqlite"))
        ledger.claim(UUID)
        ledger.close()
    finally:
        os.umask(before)
    folder = tmp_path / "new"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://u:secret@localhost/x", "holds a password"),
        ("postgresql://u@db.example.org/x", "without a verified connection"),
        ("postgresql://u@/x?host=db.example.org", "without a verified connection"),
        ("postgresql://u@db.example.org/x?sslmode=require", "without a verified connection"),
        ("mysql://u@localhost/x", "is PostgreSQL, not mysql"),
    ],
)
def test_an_unsafe_address_is_refused_and_never_repeats_a_secret(address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        open_ledger(address, "one")
    assert "secret" not in str(refused.value) + refused.value.hint


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, " * 100)
    with pytest.raises(LedgerError, match="cannot be opened"):
        opened(str(path))
    assert path.read_bytes() == b"not a database, " * 100


def test_a_ledger_from_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(LedgerError, match="newer version"):
        opened(str(path))


def test_an_up_to_date_ledger_opens_without_alembic(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite")
    opened(path).close()
    code = (
        "import sys; from agent.provisioning.ledger import open_ledger;"
        f"open_ledger({path!r}, 'one').close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_migrations_make_the_columns_that_the_code_uses(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        for table, record in (("boards", BoardRecord), ("steps", StepRecord)):
            found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert found - {"id"} == {column.name for column in fields(record)}


def test_a_ledger_of_the_first_version_is_brought_up_to_date(address: str) -> None:
    """As a station with the first version left it: its boards stay, the new columns are empty."""
    ledger = opened(address)
    ledger.claim(UUID, imei="350457791234567")
    ledger.close()
    back_to = ("ALTER TABLE boards DROP COLUMN registered_as",
               "ALTER TABLE boards DROP COLUMN attestation",
               "UPDATE alembic_version SET version_num = '0001'")  # fmt: skip
    if "://" in address:
        import psycopg

        with psycopg.connect(address, autocommit=True) as shared:
            for statement in back_to:
                shared.execute(statement)
    else:
        with closing(sqlite3.connect(address, isolation_level=None)) as file:
            for statement in back_to:
                file.execute(statement)
    ledger = opened(address)
    record = ledger.board(UUID)
    assert record is not None
    assert (record.imei, record.registered_as, record.attestation) == ("350457791234567", "", "")
    ledger.close()


def test_a_sqlite_ledger_needs_no_sqlalchemy_and_a_time_comes_back_as_it_was(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    opened(path).close()
    code = (
        "import sys; from agent.provisioning.ledger import open_ledger;"
        f"l = open_ledger({path!r}, 'one'); l.claim('u'); l.begin('u', 'key'); l.close();"
        "sys.exit('sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    ledger = opened(path)
    ledger.claim(UUID)
    record = ledger.board(UUID)
    assert record is not None
    assert record.updated_at == NOW
    ledger.close()


def test_a_column_that_is_not_there_is_a_defect_and_not_a_statement(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    with pytest.raises(ValueError, match="no column"):
        ledger.learn(UUID, **{"outcome = 'x' --": "y"})
    ledger.close()
