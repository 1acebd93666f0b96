"""A shared ledger: a claim lives on one connection, and a secret is never in its address."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from agent.errors import UsageError
from agent.provisioning.ledger import BoardBusy, LedgerError, StepRecord, backend, open_ledger
from agent.provisioning.ledger.backend import DatabaseFailed
from agent.provisioning.ledger.postgresql import PostgresqlDatabase
from agent.provisioning.ledger.reader import BoardKnowledge
from tests.support.provisioning.ledgers import (
    OTHER,
    UUID,
    claimed_once_free,
    opened,
    run_of,
    runs_once_lost,
)
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there


def test_a_claim_ends_with_its_connection_and_nothing_is_noted_after_it(cluster: str) -> None:
    """Whatever the pool could open again: the lock is gone, another station may have the board."""
    import psycopg

    first = opened(cluster)
    first.claim(run_of())
    first.begin(UUID, "key")
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(DatabaseFailed):
        first.finish(UUID, "key", attestation="TOKEN")
    second = opened(cluster, "two")
    claimed_once_free(second, run_of())  # the server tells of an end before it frees the locks
    with pytest.raises(DatabaseFailed, match="claim"):
        first.update(UUID, attestation="TOKEN")
    first.release(UUID)
    with pytest.raises(BoardBusy, match="station two"):
        first.lock(run_of())()
    second.release(UUID)
    assert first.claim(run_of())().record.attestation == ""
    first.close()
    second.close()


def test_a_connection_that_is_ended_between_two_trays_costs_the_second_no_board(
    database: str,
) -> None:
    ledger = opened(database)
    end_connections(database)
    [known] = ledger.together([lambda to: to.claim(run_of())])
    assert isinstance(known, BoardKnowledge)
    # With a claim it is another matter: that is lost, and told.
    end_connections(database)
    [lost] = ledger.together([lambda to: to.claim(run_of(OTHER))])
    assert isinstance(lost, DatabaseFailed)
    ledger.close()


def end_connections(database: str) -> None:
    """Have the server end every connection to a database, and wait until it has."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )


def test_a_call_that_waits_for_a_frozen_server_can_be_broken_off(cluster: str) -> None:
    ledger = opened(cluster)
    ledger.claim(run_of(OTHER))
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
from datetime import UTC, datetime
from agent.provisioning.ledger import open_ledger, RunRecord
ledger = open_ledger(sys.argv[1], "two")
ledger.claim(RunRecord(id="r", uuid=sys.argv[2], began_at=datetime.now(UTC)))
print("claimed", flush=True)
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
            first.lock(run_of())()
        first.claim(run_of(OTHER))
        station.kill()
        station.wait()
    claimed_once_free(first, run_of())
    first.close()


def test_a_change_that_is_not_yet_on_disk_holds_back_those_after_it(cluster: str) -> None:
    """Numbers are drawn in one order and committed in another: none may be passed over."""
    import psycopg

    ledger = opened(cluster)
    ledger.claim(run_of())
    ledger.claim(run_of(OTHER))
    seen = max(one.change for one in ledger.changes())
    with psycopg.connect(cluster) as slow:
        slow.execute("UPDATE boards SET reason = 'slow' WHERE uuid = %s", (UUID,))  # not committed
        ledger.begin(OTHER, "key")
        assert not [*ledger.changes(seen)]
    found = [*ledger.changes(seen)]
    assert [one.uuid for one in found] == [UUID, OTHER]
    assert seen < found[0].change < found[1].change
    ledger.close()


def test_every_change_comes_once_whoever_writes_meanwhile(cluster: str) -> None:
    """Four stations write, a reader comes back again and again with the last number it saw."""
    stations, notes = 4, 40
    uuids = [f"50503041-3633-4261-803d-0000000001{number:02}" for number in range(stations)]

    def work(uuid: str) -> None:
        ledger = opened(cluster, uuid[-2:])
        ledger.claim(run_of(uuid))
        for number in range(notes):
            ledger.begin(uuid, "key", str(number))
        ledger.close()

    reader = open_ledger(cluster, "reader", writes=False)
    seen, found = max((one.change for one in reader.changes()), default=0), []
    with ThreadPoolExecutor(stations) as threads:
        working = [threads.submit(work, uuid) for uuid in uuids]
        over = False
        while not over:
            over = all(one.done() for one in working)
            for change in reader.changes(seen, [StepRecord]):
                assert change.change > seen
                seen = change.change
                found.append((change.uuid, change.detail))
    for one in working:
        one.result()
    assert len(found) == len(set(found)) == stations * notes
    for uuid in uuids:
        mine = [detail for board, detail in found if board == uuid]
        assert mine == [str(number) for number in range(notes)]
    reader.close()


def test_a_run_of_a_dead_station_is_ended_by_any_other_and_that_of_a_living_one_is_not(
    cluster: str,
) -> None:
    living, dead = opened(cluster, "living"), opened(cluster, "dead")
    living.claim(run_of(id="of the living"))
    dead.claim(run_of(OTHER, id="of the dead"))
    dead.close()
    third = opened(cluster, "three")
    runs = [*runs_once_lost(third, OTHER), *living.runs(UUID)]
    third.close()
    outcomes = {run.id: run.outcome for run in runs}
    assert outcomes["of the living"] == "unfinished"
    assert outcomes["of the dead"] == "interrupted"
    living.close()


@pytest.mark.contract("C10")
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://u:secret@localhost/x", "holds a password"),
        ("postgresql://u@localhost/x?password=secret", "holds a password"),
        ("postgresql://u:secret@localhost/x?no_such=1", "is no ledger address"),
        ("postgresql://u@localhost/x?password=secret&no_such=1", "is no ledger address"),
        ("postgresql://u:secret?@localhost/x", "holds a password"),
        ("postgresql://u:secret?@localhost/x?no_such=1", "is no ledger address"),
        ("postgresql://u@localhost/x?password=a@secret&no_such=1", "is no ledger address"),
        ("postgresql://u@db.example.org/x", "without a verified connection"),
        ("postgresql://u@localhost,db.example.org/x", "without a verified connection"),
        ("postgresql://u@localhost/x?hostaddr=192.0.2.1", "without a verified connection"),
        ("postgresql://u@/x?host=db.example.org", "without a verified connection"),
        ("postgresql://u@db.example.org/x?sslmode=require", "without a verified connection"),
        ("mysql://u@localhost/x", "is PostgreSQL, not mysql"),
        ("mysql+pymysql://u@localhost/x", "is PostgreSQL, not mysql$"),
    ],
)
def test_an_unsafe_address_is_refused_and_never_repeats_a_secret(address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        open_ledger(address, "one")
    assert "secret" not in str(refused.value) + refused.value.hint


@pytest.mark.contract("C10")
def test_a_failure_is_told_in_the_servers_words_without_the_statement(cluster: str) -> None:
    database = PostgresqlDatabase(cluster, "")
    with pytest.raises(DatabaseFailed) as failed, database.transaction() as execute:
        execute("SELECT no_such, 'PRIVATE VALUE'", {})
    assert failed.value.reason == 'column "no_such" does not exist'
    assert "PRIVATE" not in str(failed.value)
    database.close()


def test_a_read_that_the_server_broke_off_is_answered_the_next_time(cluster: str) -> None:
    ledger = opened(f"{cluster}&options=-clock_timeout%3D1")
    for _ in range(5):
        ledger.board(OTHER)  # one that is read as often as this, the driver would have prepared
    with psycopg.connect(cluster) as migrating:
        migrating.execute("LOCK TABLE boards")
        with pytest.raises(DatabaseFailed, match="lock timeout"):
            ledger.board(OTHER)
    ledger.board(OTHER)
    ledger.close()


def test_a_user_who_may_make_no_tables_is_told_what_gives_him_the_right(
    cluster: str, database: str
) -> None:
    with psycopg.connect(cluster, autocommit=True) as administrator:
        administrator.execute("CREATE ROLE station LOGIN")
        address = database.replace("bench@", "station@")
        with pytest.raises(LedgerError, match="permission denied for schema") as refused:
            open_ledger(address, "one")
        assert "stations share one user" in refused.value.hint
        administrator.execute(refused.value.hint.split("`")[1].encode())
    open_ledger(address, "one").close()


def test_a_server_that_takes_no_changes_is_told_from_one_without_room_or_out_of_reach(
    cluster: str,
) -> None:
    database = PostgresqlDatabase(f"{cluster}&options=-cdefault_transaction_read_only%3Don", "")
    with (
        pytest.raises(DatabaseFailed, match="in a read-only transaction") as failed,
        database.transaction(writes=True) as execute,
    ):
        execute("CREATE TABLE taken (number INT)", {})
    assert "`SELECT pg_is_in_recovery()`" in failed.value.hint
    assert "room" not in failed.value.hint
    database.close()


def test_a_full_disk_of_the_server_is_not_taken_for_a_wrong_name_or_password(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says so as it makes the first tables, long after it took the connection."""
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"

    def migrated(tables: backend.Tables, *_: object) -> None:
        tables.execute(full, {})

    monkeypatch.setattr(backend, "upgrade", migrated)
    with pytest.raises(LedgerError, match="could not extend file") as failed:
        open_ledger(database, "one")
    assert "the disk of its server is full" in failed.value.hint
    assert "PASSWORD" not in failed.value.hint


def test_a_server_whose_full_disk_lets_nobody_in_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says before there is a connection has no code."""

    def refuse(*_: object, **_options: object) -> None:
        raise psycopg.OperationalError(
            "connection failed: FATAL:  could not write init file: No space left on device"
        )

    monkeypatch.setattr(psycopg, "connect", refuse)
    with pytest.raises(LedgerError, match="could not write init file") as failed:
        open_ledger("postgresql://bench@db.example.com/boards?sslmode=verify-full", "one")
    assert "the disk of its server is full" in failed.value.hint
    assert "PASSWORD" not in failed.value.hint


def test_a_user_whose_own_connections_are_all_taken_is_not_told_of_the_whole_server(
    cluster: str, database: str
) -> None:
    address = database.replace("bench@", "limited@")
    with psycopg.connect(cluster, autocommit=True) as administrator:
        administrator.execute("CREATE ROLE limited LOGIN CONNECTION LIMIT 0")
        with pytest.raises(LedgerError, match='no connection is left for role "limited"') as full:
            open_ledger(address, "one", writes=False)
        administrator.execute(full.value.hint.split("`")[1].encode())
    open_ledger(address, "one", writes=False).close()


def test_one_process_of_a_station_gives_its_records_at_a_time(cluster: str) -> None:
    first, second, other = opened(cluster), opened(cluster), opened(cluster, "two")
    assert first.hold_handovers()
    assert not second.hold_handovers()
    assert other.hold_handovers()
    first.release_handovers()
    assert second.hold_handovers()
    second.close()  # as a kill does: the server releases it, which is an event of its own
    for _ in range(1000):
        if first.hold_handovers():
            break
        os.sched_yield()
    else:
        pytest.fail("the process that ended still holds them")
    first.close()
    other.close()


def test_a_server_says_how_many_connections_the_stations_need_before_none_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        with postgres_if_there() as server:
            server.execute("ALTER SYSTEM SET max_connections = 15")
            server.execute("ALTER SYSTEM SET autovacuum = off")  # its workers are connected, too
            server.kill()
            server.start()
            # Two of them, and three that are kept for the superuser, leave ten.
            stations = [opened(server.url, str(number)) for number in range(2)]
            assert caplog.messages == []
            stations += [opened(server.url, str(number)) for number in range(2, 15)]
            assert "has room for 9 stations more: `max_connections`" in caplog.messages[0]
            assert "has room for 0 stations more" in caplog.messages[-1]
            with pytest.raises(LedgerError, match="no connection left") as full:
                opened(server.url, "one too many")
            assert "max_connections" in full.value.hint
            for station in stations:
                station.close()
    except PostgresMissing as missing:
        pytest.skip(str(missing))
