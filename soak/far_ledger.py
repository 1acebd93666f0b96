"""The bench with its ledger on a server, 0 and 80 ms away: power, swaps, second thoughts, trays."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
from provisioning import SEED, pulls, quiet_service
from second_thoughts import second_thoughts
from swapped_boards import swapped
from tray_faults import with_each_fault
from trials.measure import Row

from agent.provisioning.ledger import open_ledger
from tests.support.provisioning.far_database import far_database
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.provisioning.far_database import FarDatabase
    from tests.support.provisioning.postgres import PostgresServer
    from tests.support.provisioning.station_crashes import StationFolder

NAME = "far-ledger"
_DELAYS_S = 0.0, 0.08
Trial = Callable[["_Distance", bool], "Iterator[Row]"]


def _at_each_distance(smoke: bool, trial: Trial) -> Iterator[Row]:
    try:
        with quiet_service() as station, postgres_if_there() as server:
            for delay_s in _DELAYS_S:
                with far_database(server.url, delay_s) as far:
                    for row in trial(_Distance(station, server, far), smoke):
                        yield replace(row, what=f"{row.what}, {delay_s * 1000:.0f} ms away")
    except PostgresMissing as missing:
        yield Row("a ledger on a server", 0, "boards", 0, skipped=str(missing))


class _Distance:
    """A station whose ledgers are as far away as `far`."""

    def __init__(self, station: StationFolder, server: PostgresServer, far: FarDatabase) -> None:
        self._away = f"{far.delay_s * 1000:.0f}"
        self.server = server
        self.far = far
        folder = station.folder / self._away
        folder.mkdir()
        for file in ("ca.pem", "ca.key"):
            (folder / file).write_bytes((station.folder / file).read_bytes())
            (folder / file).chmod(0o600)
        self.station = msgspec.structs.replace(
            station, folder=folder, ledger=self.new_ledger("boards")
        )

    def new_ledger(self, name: str) -> str:
        """Return the address of a ledger with its tables made."""
        near = self.server.new_database(f"{name}_{self._away}")
        open_ledger(near, "first").close()
        return self.far.url_of(near)


def power(smoke: bool) -> Iterator[Row]:
    """Pull the power of host and board at once, with the ledger 0 and 80 ms away."""

    def trial(there: _Distance, smoke: bool) -> Iterator[Row]:
        yield from pulls(there.station, random.Random(SEED), smoke, instants=100)

    yield from _at_each_distance(smoke, trial)


def swaps(smoke: bool) -> Iterator[Row]:
    """Swap boards in their runs, with the ledger 0 and 80 ms away."""

    def trial(there: _Distance, smoke: bool) -> Iterator[Row]:
        count = 4 if smoke else 100
        wrong, unnoticed = swapped(there.station, random.Random(SEED), count)
        yield Row(f"keys on a wrong board in {count} swaps", wrong, "keys", 0, f"seed {SEED}")
        yield Row("swaps that went unnoticed", unnoticed, "swaps", 0)

    yield from _at_each_distance(smoke, trial)


def thoughts(smoke: bool) -> Iterator[Row]:
    """Have second thoughts about boards that are done, with the ledger 0 and 80 ms away."""

    def trial(there: _Distance, smoke: bool) -> Iterator[Row]:
        rounds = 1 if smoke else 50
        wrongs = second_thoughts(there.station, SEED, rounds, there.new_ledger)
        what = f"keys that died without a word in {rounds} rounds of second thoughts"
        yield Row(what, len(wrongs), "keys", 0, "; ".join(wrongs[:3]) or f"seed {SEED}")

    yield from _at_each_distance(smoke, trial)


def trays(smoke: bool) -> Iterator[Row]:
    """Strike trays of sixteen processes, with the ledger 0 and 80 ms away."""

    def trial(there: _Distance, smoke: bool) -> Iterator[Row]:
        if smoke:
            return
        ways, wrongs = with_each_fault(there.server, there.far)
        what = f"boards not right of trays of 16 struck in {ways} ways"
        yield Row(what, len(wrongs), "boards", 0, "; ".join(wrongs[:3]) or f"seed {SEED}")

    yield from _at_each_distance(smoke, trial)


PARTS = (power, swaps, thoughts, trays)
