"""A bench as the page sees it: a tray in every state, and a ledger with the runs of a morning."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

from agent.page.bench_feed import RunningBench
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ledger import RunRecord, WorkOrder
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.bench import Bench
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.scans import Scans
from agent.provisioning.running.tray import Tray, key_of
from at.firmware_gate import firmware_verdict
from tests.support.page.page_agent import ledger_in

TOO_OLD = firmware_verdict("mfw_nrf9160_1.2.8")
REFUSED = {
    "outcome": "refused",
    "step": "gate",
    "exit": 4,
    "reason_code": "old-firmware",
    "reason": TOO_OLD.reason,
    "hint": TOO_OLD.hint,
}
FAILED = {
    "outcome": "failed",
    "step": "key",
    "exit": 3,
    "reason_code": "no-answer",
    "reason": "no answer to AT%KEYGEN within 30 s",
    "hint": "",
}
BUSY = {
    "outcome": "busy",
    "step": "find",
    "exit": 6,
    "reason_code": "port-busy",
    "reason": "ModemManager holds the port",
    "hint": "`cellagent run --print-udev`",
}
_RUNS = count()


def place(row: int, column: int) -> BoardLocation:
    """Return a slot of the tray: A1 to D4 of one of 4x4."""
    return BoardLocation(
        "", f"1-{row}.{column}", f"{chr(64 + row)}{column}", f"serial:{row}{column}"
    )


def bench_of(rows: int = 4, columns: int = 4, *, scans: bool = False) -> RunningBench:
    """Return a bench whose slots are all empty."""
    tray = Tray((columns, rows))
    tray.know(place(row, column) for row in range(1, rows + 1) for column in range(1, columns + 1))
    station = Station(*cast(Any, [None] * 6), WorkOrder("op 7", "L-0417"))
    return RunningBench(Bench(tray, Scans(tray) if scans else None), station)


def plug(running: RunningBench, places: Sequence[BoardLocation]) -> None:
    """Have kits in these slots, and nowhere else."""
    running.bench.look({each.port: (each, each.port) for each in places})


def end(running: RunningBench, location: BoardLocation, seconds: float = 4.2, **ends: Any) -> None:
    """Have the run of a board begin, and end as told."""
    running.bench.begin(location)
    running.bench.tray.slots[key_of(location)].began = time.monotonic() - seconds
    told = {"outcome": "done", "step": "restore", **ends}
    running.bench.end(Outcome(location=location, **told))


def morning() -> RunningBench:
    """Return a bench of sixteen with a slot of every state."""
    running = bench_of()
    places = [place(row, column) for row in range(1, 5) for column in range(1, 5)]
    plug(running, places[:-1])
    for each, ends in zip(
        places, [{}, {}, {"outcome": "unchanged"}, {}, {}, REFUSED, {}, {}, {}], strict=False
    ):
        end(running, each, **ends)
    end(running, places[11], 33.0, **FAILED)
    end(running, places[12], 0.4, **BUSY)
    for each, step in (
        (places[9], ProvisioningStep.CERTIFICATE),
        (places[13], ProvisioningStep.REGISTER),
    ):
        running.bench.begin(each)
        running.bench.step(each, step)
    running.look()
    return running


def record(folder: Path, at: datetime, **columns: Any) -> None:
    """Write a run that ended into the bench's ledger."""
    number = next(_RUNS)
    told = {
        "outcome": "done",
        "timings": '{"key": 1.21, "write": 0.62, "register": 0.58}',
        **columns,
    }
    run = RunRecord(
        id=f"run-{number}",
        uuid=f"56495254-c7c0-edb6-11db-{number:012}",
        device_id=f"nrf-35123456789{number:04}",
        slot=f"A{number % 4 + 1}",
        station="line-2",
        operator="op 7",
        lot="L-0417",
        began_at=at - timedelta(seconds=5 + at.minute % 3),  # whatever was recorded before
        ended_at=at,
        **told,
    )
    ledger = ledger_in(folder, writes=True)
    ledger.record_run(run)
    ledger.close()
