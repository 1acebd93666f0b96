"""The bench: power pulled, boards swapped, second thoughts, two stations, trays, canary secrets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from leaked_secrets import canaries_found
from many_stations import at_once
from power_loss import edges_of_a_run, pulled, rows_of_instants, wrongs_after
from second_thoughts import second_thoughts
from swapped_boards import swapped, two_stations
from tray_faults import unchanged, with_each_fault
from trials.measure import Row, counted

from tests.support.keys.operator_ca import make_ca
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there
from tests.support.provisioning.station_crashes import StationFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.provisioning.postgres import PostgresServer

NAME = "provisioning"
SEED = 20260314
_JUDGED = 32
"""The most stations whose claims have a goal: where two cores have 100, these are the curve."""


@contextlib.contextmanager
def service(folder: Path) -> Iterator[StationFolder]:
    """Serve a stand-in in a process of its own; yield a station that uses it."""
    command = (sys.executable, "-m", "agent", "cloud", "serve", "--state", str(folder / "cloud"))
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        ready = json.loads(server.stdout.readline())
        make_ca(folder)
        yield StationFolder(folder, ready["urls"], ready["credentials"]["api_key"])
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


@contextlib.contextmanager
def quiet_service() -> Iterator[StationFolder]:
    """Serve it in a folder of its own, and log nothing of what is wrong on purpose."""
    logging.disable(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as name, service(Path(name)) as station:
            yield station
    finally:
        logging.disable(logging.NOTSET)


def power(smoke: bool) -> Iterator[Row]:
    """Pull the power of host and board at once: at every edge of a run, and at random instants."""
    with quiet_service() as station:
        yield from pulls(station, random.Random(SEED), smoke)


def swaps(smoke: bool) -> Iterator[Row]:
    """Swap boards in their runs."""
    count = 10 if smoke else 1000
    with quiet_service() as station:
        wrong, unnoticed = swapped(station, random.Random(SEED), count)
    yield Row(f"keys on a wrong board in {count} swaps", wrong, "keys", 0, f"seed {SEED}")
    yield Row("swaps that went unnoticed", unnoticed, "swaps", 0)


def thoughts(smoke: bool) -> Iterator[Row]:
    """Have second thoughts about boards that are done: other tags, devices, keys and ways."""
    rounds = 2 if smoke else 1000
    with quiet_service() as station:
        wrongs = second_thoughts(station, SEED, rounds)
    what = f"keys that died without a word in {rounds} rounds of second thoughts"
    yield Row(what, len(wrongs), "keys", 0, "; ".join(wrongs[:3]) or f"seed {SEED}")


def secrets(smoke: bool) -> Iterator[Row]:
    """Look for canary secrets in all that a run leaves behind."""
    levels = ["-vvv"] if smoke else ["", "-v", "-vv", "-vvv"]
    with quiet_service() as station:
        found = canaries_found(station.folder / "canaries", levels)
    yield Row(f"canary secrets found at {len(levels)} verbosities", found, "secrets", 0)


def pulls(
    station: StationFolder, dice: random.Random, smoke: bool, instants: int = 500
) -> Iterator[Row]:
    """Pull the power of a station, with its ledger wherever that is."""
    edges = edges_of_a_run(station, 0)
    began = time.perf_counter()
    asyncio.run(station.provision(1_000))
    whole_s = time.perf_counter() - began
    wrongs: list[str] = []
    chosen = range(1, edges + 1, 12 if smoke else 1)
    for board, edge in enumerate(counted("edges", chosen), 1):
        assert pulled(station, board, edge, None)
        wrongs += wrongs_after(station, board)
    yield _boards(f"after power was pulled at {len(chosen)} of {edges} edges", wrongs)

    count, wrongs = 8 if smoke else instants, []
    board = 10_000
    for _instant in counted("instants", range(count)):
        # As fast as the machine is now: what ended before its instant was not cut.
        while not pulled(station, board, 0, dice.uniform(0.0, whole_s)):
            whole_s *= 0.95
            wrongs += wrongs_after(station, board)
            board += 1
        whole_s *= 1.02
        wrongs += wrongs_after(station, board)
        board += 1
    yield _boards(f"after runs were cut at {count} random instants", wrongs)


def trays(smoke: bool) -> Iterator[Row]:
    """Trays of sixteen processes: unchanged, and with each fault, with both ledgers."""
    runs = 2 if smoke else 100
    writes, wrongs = unchanged(runs)
    yield Row(f"credential writes to a right tray of 16 in {runs} runs", writes, "writes", 0)
    yield _boards(f"in {runs} runs of a right tray of 16", wrongs)
    if smoke:
        return
    ways, wrongs = with_each_fault(None)
    yield _boards(f"of trays of 16 struck in {ways} ways, SQLite", wrongs)
    try:
        with postgres_if_there() as server:
            ways, wrongs = with_each_fault(server)
    except PostgresMissing as missing:
        yield Row("boards of trays, PostgreSQL", 0, "boards", 0, skipped=str(missing))
        return
    yield _boards(f"of trays of 16 struck in {ways} ways, PostgreSQL", wrongs)
    for what, boards, wrongs in rows_of_instants(500, random.Random(SEED)):
        yield _boards(f"after {what} under {boards} boards", wrongs)


def many_stations(smoke: bool) -> Iterator[Row]:
    """Stations that share a ledger and want the same boards: two, then many."""
    rounds = 3 if smoke else 100
    try:
        with quiet_service() as station, postgres_if_there() as server:
            interleaved, not_done = two_stations(station, server.url, rounds)
            what = f"boards that two stations worked on at once in {rounds} rounds"
            yield Row(what, interleaved, "boards", 0)
            yield Row("boards that neither of them finished", not_done, "boards", 0)
            yield from stations(server, station.folder, smoke)
    except PostgresMissing as missing:
        yield Row("boards of many stations", 0, "boards", 0, skipped=str(missing))


def stations(server: PostgresServer, folder: Path, smoke: bool) -> Iterator[Row]:
    """Give boards to many stations, two of which want each."""
    # Of the most stations ten boards each would take minutes on two cores.
    crowds = [(3, 12)] if smoke else [(8, 80), (32, 300), (100, 300)]
    server.execute(f"ALTER SYSTEM SET max_connections = {crowds[-1][0] + 20}")
    server.kill()
    server.start()
    alone = at_once(server, folder, 1, 4 if smoke else 10)
    for number, boards in crowds:
        many = at_once(server, folder, number, boards)
        what = f"of {number} stations on {boards} boards"
        yield Row(f"boards that two had at once, {what}", many.doubled, "boards", 0)
        yield Row(f"deadlocks, {what}", many.deadlocks, "deadlocks", 0)
        yield Row(f"boards that nobody had, {what}", boards - many.boards, "boards", 0)
        if not smoke:
            goal = 10 * alone.claim_s if number <= _JUDGED else None
            yield Row(f"99 % of claims, {what}", many.claim_s, "s", goal,
                      f"one station {alone.claim_s:.3f} s")  # fmt: skip


def _boards(what: str, wrongs: list[str]) -> Row:
    return Row(f"boards not right {what}", len(wrongs), "boards", 0,
               "; ".join(wrongs[:3]) or f"seed {SEED}")  # fmt: skip


PARTS = (power, swaps, thoughts, secrets, trays, many_stations)
