"""Each kind of failure by itself, on a tray of sixteen kits and against both ledgers."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench_strikes import BENCH_STRIKES, BenchStrike
from measure import counted
from tray import flash_writes
from tray_strikes import STRIKES, Strike, Strikes
from tray_trial import Trial, tray_trial

if TYPE_CHECKING:
    from postgres import PostgresServer

SIXTEEN = range(16)
STRUCK = 5


def struck_kit(strike: Strike, server: PostgresServer | None) -> list[str]:
    """Strike one kit of sixteen, mend it, run again; return what was not as it must be."""
    faults = {STRUCK: strike.fault} if strike.fault else {}
    with (
        tempfile.TemporaryDirectory() as name,
        tray_trial(Path(name), SIXTEEN, server=server, faults=faults) as trial,
        contextlib.ExitStack() as stack,
    ):
        strikes = Strikes(trial, {STRUCK: strike}, stack)
        strikes.prepare()
        run = trial.begin("--expect", "16")
        strikes.during(run)
        ran = run.ended()
        lines = {number: ran.by_port[trial.ports[number]] for number in SIXTEEN}
        wrongs = strikes.unlike(STRUCK, lines[STRUCK])
        wrongs += [
            f"{strike.name}: another board was {lines[number]['outcome']}"
            for number in SIXTEEN if number != STRUCK and lines[number]["outcome"] != "done"
        ]  # fmt: skip
        if ran.code != strike.exit:
            wrongs.append(f"{strike.name}: exit {ran.code}")
        strikes.mend()
        wrongs += rerun(trial, strike.name, *strikes.rerun_options())
        if more_writes(trial)[STRUCK] not in strike.extra_writes:
            wrongs.append(f"{strike.name}: {more_writes(trial)[STRUCK]} more writes")
        return wrongs


def struck_bench(strike: BenchStrike, server: PostgresServer | None) -> list[str]:
    """Strike a whole bench, mend it, run again; return what was not as it must be."""
    with (
        tempfile.TemporaryDirectory() as name,
        tray_trial(Path(name), SIXTEEN, server=server) as trial,
    ):
        wrongs = strike.unlike(strike.on(trial, STRUCK))
        strike.mend(trial)
        wrongs += rerun(trial, strike.name)
        if not set(more_writes(trial).values()) <= ({0, 2} if strike.orphans else {0}):
            wrongs.append(f"{strike.name}: {more_writes(trial)} more writes")
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


def struck(server: PostgresServer | None) -> tuple[int, list[str]]:
    """Strike in every way with one ledger; return in how many, and what was wrong."""
    ledger = "sqlite" if server is None else "postgresql"
    benches = [one for one in BENCH_STRIKES if ledger in one.ledgers]
    wrongs = []
    for kit in counted(f"kits struck, {ledger}", STRIKES):
        wrongs += struck_kit(kit, server)
    for bench in counted(f"benches struck, {ledger}", benches):
        wrongs += struck_bench(bench, server)
    return len(STRIKES) + len(benches), wrongs


def unchanged(runs: int) -> tuple[int, list[str]]:
    """Provision a tray that is right again and again; return the writes, and what was wrong."""
    with tempfile.TemporaryDirectory() as name, tray_trial(Path(name), SIXTEEN) as trial:
        first = trial.run()
        wrongs = [line["reason"] for line in first.by_port.values() if line["exit"]]
        for _run in counted("runs of an unchanged tray", range(runs)):
            ran = trial.run()
            wrongs += [str(ran.last)] if ran.last["summary"].get("unchanged") != 16 else []
        return sum(more_writes(trial).values()), wrongs + trial.wrongs(SIXTEEN)
