"""What changed since a cursor: each change once and in order, whoever writes meanwhile."""

from __future__ import annotations

import random
import threading

import psycopg
from msgspec.structs import replace

from agent.provisioning.ledger import BoardRecord, RunRecord
from tests.support.provisioning.ledgers import NOW, OTHER, UUID, opened, run_of


def database(cluster: str, name: str) -> str:
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return cluster.replace("/postgres?", f"/{name}?")


def test_a_follower_misses_nothing_while_many_stations_write(cluster: str) -> None:
    address = database(cluster, "many_writers")
    opened(address).close()
    working = [True] * 4

    def work(station: int) -> None:
        chance = random.Random(station)
        ledger = opened(address, f"station {station}")
        for number in range(25):
            run = run_of(f"{station}-{chance.randrange(5)}", lot=str(number))
            ledger.claim(run)
            ledger.begin(run.uuid, "key", writes=1)
            ledger.finish_key(run.uuid, "key", "", "PEM", "", "again")
            ledger.conclude(replace(run, outcome="done", step="key", ended_at=NOW, writes=1))
            ledger.release(run.uuid)
        ledger.close()
        working[station] = False

    stations = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for station in stations:
        station.start()
    reader, cursor, numbers, state = opened(address, "reader"), 0, [], {}
    last_round = False
    while not last_round:
        last_round = not any(working)
        for record in reader.changes(cursor):
            numbers.append(record.change)
            key = record.uuid if isinstance(record, BoardRecord) else record.id
            state[type(record), key] = record
            cursor = record.change
    for station in stations:
        station.join()
    assert numbers == sorted(set(numbers))
    now = {
        (type(record), record.uuid if isinstance(record, BoardRecord) else record.id): record
        for record in reader.changes(0)
    }
    assert state == now
    assert sum(kind is RunRecord for kind, _ in now) == 100
    reader.close()


def test_a_transaction_of_any_size_takes_one_lock(cluster: str) -> None:
    address = database(cluster, "large_change")
    ledger = opened(address)
    for uuid in (UUID, OTHER):
        ledger.claim(run_of(uuid))
    ledger.close()
    locks = "SELECT count(*) FROM pg_locks WHERE classid::bigint = 1850885690"
    with psycopg.connect(address) as writer:
        for _ in range(3):
            writer.execute("UPDATE boards SET slot = slot || 'x'")
        assert writer.execute(locks).fetchone() == (1,)
        writer.commit()
        writer.execute("UPDATE boards SET slot = ''")
        assert writer.execute(locks).fetchone() == (1,)
