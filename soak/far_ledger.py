"""The bench with its ledger on a server, 0 and 80 ms away: power, swaps, second thoughts, trays."""

from __future__ import annotations

import logging
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from far_database import far_database
from measure import Row
from postgres import PostgresMissing, postgres_if_there
from provisioning import SEED, power, service
from second_thoughts import second_thoughts
from swapped_boards import swapped
from tray_faults import with_each_fault

from agent.provisioning.ledger import open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from far_database import FarDatabase
    from postgres import PostgresServer
    from station_crashes import StationFolder

NAME = "far-ledger"
_DELAYS_S = 0.0, 0.08


def run(smoke: bool) -> Iterator[Row]:
    logging.disable(logging.ERROR)
    try:
        with (
            tempfile.TemporaryDirectory() as name,
            service(Path(name)) as station,
            postgres_if_there() as server,
        ):
            for delay_s in _DELAYS_S:
                with far_database(server.url, delay_s) as far:
                    for row in at_distance(station, server, far, smoke):
                        yield replace(row, what=f"{row.what}, {delay_s * 1000:.0f} ms away")
    except PostgresMissing as missing:
        yield Row("a ledger on a server", 0, "boards", 0, skipped=str(missing))


def at_distance(
    station: StationFolder, server: PostgresServer, far: FarDatabase, smoke: bool
) -> Iterator[Row]:
    """Yield what was wrong with the ledger as far away as `far`, in `delay_s`."""
    away = f"{far.delay_s * 1000:.0f}"
    folder = station.folder / away
    folder.mkdir()

    def new_ledger(name: str) -> str:
        near = server.new_database(f"{name}_{away}")
        open_ledger(near, "first").close()  # makes its tables
        return far.url_of(near)

    for file in ("ca.pem", "ca.key"):
        (folder / file).write_bytes((station.folder / file).read_bytes())
        (folder / file).chmod(0o600)
    there = replace(station, folder=folder, ledger=new_ledger("boards"))
    dice = random.Random(SEED)
    yield from power(there, dice, smoke, instants=100)

    count = 4 if smoke else 100
    wrong, unnoticed = swapped(there, dice, count)
    yield Row(f"keys on a wrong board in {count} swaps", wrong, "keys", 0, f"seed {SEED}")
    yield Row("swaps that went unnoticed", unnoticed, "swaps", 0)

    rounds = 1 if smoke else 50
    wrongs = second_thoughts(there, dice, rounds, new_ledger)
    what = f"keys that died without a word in {rounds} rounds of second thoughts"
    yield Row(what, len(wrongs), "keys", 0, "; ".join(wrongs[:3]) or f"seed {SEED}")

    if not smoke:
        ways, wrongs = with_each_fault(server, far)
        what = f"boards not right of trays of 16 struck in {ways} ways"
        yield Row(what, len(wrongs), "boards", 0, "; ".join(wrongs[:3]) or f"seed {SEED}")
