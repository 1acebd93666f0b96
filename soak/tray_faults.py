"""Each kind of failure by itself, on a tray of sixteen kits and against both ledgers."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import counted

from tests.support.provisioning.kit_faults import KIT_FAULTS, FaultInjection, KitFault
from tests.support.provisioning.station_faults import STATION_FAULTS, StationFault
from tests.support.provisioning.tray import flash_writes
from tests.support.provisioning.tray_trial import Trial, tray_trial

if TYPE_CHECKING:
    from tests.support.provisioning.far_database import FarDatabase
    from tests.support.provisioning.postgres import PostgresServer

SIXTEEN = range(16)
FAULTY = 5


def with_faulty_kit(
    fault: KitFault, server: PostgresServer | None, far: FarDatabase | None
) -> list[str]:
    """Give one kit of sixteen a fault, repair it, run again; return what was not as it must be."""
    faults = {FAULTY: fault.modem_fault} if fault.modem_fault else {}
    with (
        tempfile.TemporaryDirectory() as name,
        tray_trial(Path(name), SIXTEEN, server=server, far=far, faults=faults) as trial,
        contextlib.ExitStack() as stack,
    ):
        injection = FaultInjection(trial, {FAULTY: fault}, stack)
        injection.prepare()
        run = trial.begin("--expect", "16")
        injection.during(run)
        ran = run.ended()
        lines = {number: ran.by_port[trial.ports[number]] for number in SIXTEEN}
        wrongs = injection.deviations(FAULTY, lines[FAULTY])
        wrongs += [
            f"{fault.name}: another board was {lines[number]['outcome']}"
            for number in SIXTEEN if number != FAULTY and lines[number]["outcome"] != "done"
        ]  # fmt: skip
        if ran.code != fault.exit:
            wrongs.append(f"{fault.name}: exit {ran.code}")
        injection.repair()
        wrongs += rerun(trial, fault.name, *injection.rerun_options())
        if more_writes(trial)[FAULTY] not in fault.extra_writes:
            wrongs.append(f"{fault.name}: {more_writes(trial)[FAULTY]} more writes")
        return wrongs


def with_faulty_station(
    fault: StationFault, server: PostgresServer | None, far: FarDatabase | None
) -> list[str]:
    """Give a whole station a fault, repair it, run again; return what was not as it must be."""
    with (
        tempfile.TemporaryDirectory() as name,
        tray_trial(Path(name), SIXTEEN, server=server, far=far) as trial,
    ):
        wrongs = fault.deviations(fault.on(trial, FAULTY))
        fault.repair(trial)
        wrongs += rerun(trial, fault.name)
        if not set(more_writes(trial).values()) <= ({0, 2} if fault.orphans else {0}):
            wrongs.append(f"{fault.name}: {more_writes(trial)} more writes")
        return wrongs


def rerun(trial: Trial, name: str, *options: str) -> list[str]:
    """Run a mended tray again, and once more: done, then unchanged, one key a board."""
    again, last = trial.run(*options), trial.run()
    wrongs = [f"{name}: rerun: {line['reason']}" for line in again.by_port.values() if line["exit"]]
    if last.last != {"summary": {"boards": 16, "unchanged": 16, "ok": True}}:
        wrongs.append(f"{name}: the run after the rerun: {last.last}")
    return wrongs + [f"{name}: {wrong}" for wrong in trial.wrongs(SIXTEEN)]


def more_writes(trial: Trial) -> dict[int, int]:
    """Return how many writes more than three each board's flash has seen."""
    return {number: flash_writes(trial.kits[number]) - 3 for number in SIXTEEN}


def with_each_fault(
    server: PostgresServer | None, far: FarDatabase | None = None
) -> tuple[int, list[str]]:
    """Run each fault with one ledger; return how many there are, and what was wrong.

    `far`: the stations reach the server through it.
    """
    ledger = "sqlite" if server is None else "postgresql"
    stations = [one for one in STATION_FAULTS if ledger in one.ledgers]
    wrongs = []
    for kit in counted(f"faults of kits, {ledger}", KIT_FAULTS):
        wrongs += with_faulty_kit(kit, server, far)
    for bench in counted(f"faults of stations, {ledger}", stations):
        wrongs += with_faulty_station(bench, server, far)
    return len(KIT_FAULTS) + len(stations), wrongs


def unchanged(runs: int) -> tuple[int, list[str]]:
    """Provision a tray that is right again and again; return the writes, and what was wrong."""
    with tempfile.TemporaryDirectory() as name, tray_trial(Path(name), SIXTEEN) as trial:
        first = trial.run()
        wrongs = [line["reason"] for line in first.by_port.values() if line["exit"]]
        for _run in counted("runs of an unchanged tray", range(runs)):
            ran = trial.run()
            wrongs += [str(ran.last)] if ran.last["summary"].get("unchanged") != 16 else []
        return sum(more_writes(trial).values()), wrongs + trial.wrongs(SIXTEEN)
