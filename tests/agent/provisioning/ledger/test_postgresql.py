"""A shared ledger: a claim lives on one connection, and a secret is never in its address."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from ledgers import OTHER, UUID, opened, run_of

from agent.errors import UsageError
from agent.provisioning.ledger import BoardBusy, open_ledger
from agent.provisioning.ledger.backend import DatabaseFailed


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
    second.claim(run_of())
    with pytest.raises(DatabaseFailed, match="claim"):
        first.update(UUID, attestation="TOKEN")
    first.release(UUID)
    with pytest.raises(BoardBusy, match="station two"):
        first.claim(run_of())
    second.release(UUID)
    assert first.claim(run_of()).attestation == ""
    first.close()
    second.close()


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
from agent.provisioning.ledger import open_ledger, BoardBusy, RunRecord
ledger = open_ledger(sys.argv[1], "two")
try:
    ledger.claim(RunRecord(id="r", uuid=sys.argv[2], began_at=datetime.now(UTC)))
    print("claimed", flush=True)
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
            first.claim(run_of())
        first.claim(run_of(OTHER))
        station.kill()
        station.wait()
    # The server frees the lock when it notices the lost session; that is an event of its own.
    for _ in range(1000):
        try:
            first.claim(run_of())
            break
        except BoardBusy:
            os.sched_yield()
    else:
        pytest.fail("the dead station still has the board")
    first.close()


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
    ],
)
def test_an_unsafe_address_is_refused_and_never_repeats_a_secret(address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        open_ledger(address, "one")
    assert "secret" not in str(refused.value) + refused.value.hint
