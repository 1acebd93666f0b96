"""Power pulled from the bench: from host and board at once, from one of them, or the cable."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from trials.measure import progress

from agent.provisioning.ledger import open_ledger
from tests.support.provisioning.cable import cables
from tests.support.provisioning.station_crashes import KillAt, StationFolder, forked
from tests.support.provisioning.tray_trial import Trial, tray_trial
from tests.support.provisioning.virtual_tray import TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIXTEEN = range(16)
_LOOK_S = 0.005
_SESSION_BYTES = 1045  # what the bench types into a fresh kit, from first to last


def edges_of_a_run(station: StationFolder, board: int) -> int:
    """Return how many edges a whole run has."""
    counter = KillAt()
    asyncio.run(station.provision(board, counter))
    return counter.seen


def pulled(station: StationFolder, board: int, edge: int, after_s: float | None) -> bool:
    """Pull the power at an edge, or after a time; return whether that was before the end."""
    child = forked(lambda: station.provision(board, KillAt(edge)))
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if station.ledger:
        _wait_until_its_session_ended(station.address)
    return os.WIFSIGNALED(status)


def _wait_until_its_session_ended(address: str) -> None:
    """Wait until a server has noticed that a process is gone, and holds no board for it.

    A bench takes longer than that to start again; the next run here does not.
    """
    held = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid "
        "WHERE locktype = 'advisory' AND datname = current_database()"
    )
    with psycopg.connect(address, autocommit=True) as connection:
        while connection.execute(held).fetchone() != (0,):
            time.sleep(_LOOK_S)


def wrongs_after(station: StationFolder, board: int) -> list[str]:
    """Run the board again and return what is not as it must be then."""
    outcome = asyncio.run(station.provision(board))
    held = json.loads(station.state(board).read_text())["credentials"]
    types = sorted(place for place in held if place.startswith(f"{TAG},"))
    ledger = open_ledger(station.address, "judge", writes=False)
    try:
        record = ledger.board(outcome.uuid)
        notes = ledger.steps(outcome.uuid)
    finally:
        ledger.close()
    keys = {note.detail for note in notes if (note.step, note.state) == ("register", "begun")}
    wrongs = []
    if not outcome.ok:
        wrongs.append(f"not done: {outcome.reason}")
    if types != [f"{TAG},{kind}" for kind in (0, 1, 2)]:
        wrongs.append(f"held: {types}")
    # The proof that ended the run says that the service has the key that is in the modem.
    if len(keys) != 1:
        wrongs.append(f"{len(keys)} keys were sent to the service")
    if record is None or not record.registered_key:
        wrongs.append("the ledger knows no registration")
    return wrongs


# --- host alone, kit alone, cable: trays of sixteen, everything a process of its own


def at_random(
    interrupt: Callable[[Trial, random.Random], int], boards: int, dice: random.Random, what: str
) -> tuple[int, list[str]]:
    """Interrupt runs of fresh trays; return how many boards that hit and what a rerun left wrong.

    `interrupt` runs the station on a tray, interrupts it, and returns how many boards that hit:
    those that had ended before count for nothing, so trays follow until there are enough.
    """
    interrupted, wrongs = 0, []
    while interrupted < boards:
        progress(what, interrupted, boards)
        with tempfile.TemporaryDirectory() as name, tray_trial(Path(name), SIXTEEN) as trial:
            interrupted += interrupt(trial, dice)
            again = trial.run()
            wrongs += [line["reason"] for line in again.by_port.values() if line["exit"]]
            last = trial.run()
            wrongs += ["a right board was written to" for line in last.by_port.values()
                       if line["writes"]]  # fmt: skip
            wrongs += trial.wrongs(SIXTEEN)
    progress(what, boards, boards)
    return interrupted, wrongs


def kill_host(trial: Trial, dice: random.Random) -> int:
    """Kill the bench at an instant: the kits stay as they are."""
    run = trial.begin()
    run.until(dice.choice(SIXTEEN), "ca-chain")
    time.sleep(dice.uniform(0.0, 1.2))
    run.stop(signal.SIGKILL)
    ran = run.ended()
    return 16 - len(ran.by_port)


def kill_kits(trial: Trial, dice: random.Random) -> int:
    """Kill each kit at an instant of its own; the bench goes on to its end."""
    instants = sorted((dice.uniform(0.0, 1.2), number) for number in SIXTEEN)
    run = trial.begin()
    run.until(instants[0][1], "ca-chain")
    began = time.monotonic()
    for instant, number in instants:
        while time.monotonic() < began + instant:
            time.sleep(_LOOK_S)
        trial.kits[number].process.kill()
    ran = run.ended()
    trial.unplug(SIXTEEN)
    trial.plug_in(SIXTEEN)
    return sum(line["exit"] != 0 for line in ran.by_port.values())


def pull_cables(trial: Trial, dice: random.Random) -> int:
    """Pull each kit's cable after some byte that the bench types; the kits stay powered."""
    with cables() as cable:
        links = [trial.folder / f"cable{number}" for number in SIXTEEN]
        pulled = [cable(links[number], trial.kits[number].port) for number in SIXTEEN]
        for one in pulled:
            one.pull_after(dice.randrange(1, _SESSION_BYTES))
        ran = trial.begin(ports=[str(link) for link in links]).ended()
    return sum(line["exit"] != 0 for line in ran.by_port.values())


def rows_of_instants(boards: int, dice: random.Random) -> Iterator[tuple[str, int, list[str]]]:
    """Yield what was done, to how many boards, and what was wrong after."""
    for what, interrupt in (
        ("the bench alone was killed", kill_host),
        ("the kit alone was killed", kill_kits),
        ("the cable was pulled at some byte", pull_cables),
    ):
        yield what, *at_random(interrupt, boards, dice, what)
