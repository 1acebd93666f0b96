"""Many stations on one PostgreSQL: who gets a board, how long a claim takes, what the server says.

Each station is a process with the ledger's own code and a list of boards that others have as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import methodcaller
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING
from uuid import uuid4

from msgspec.structs import replace

from agent.provisioning.ledger import RunRecord, StepRecord, open_ledger
from agent.provisioning.ledger.backend import BoardsLocked
from tests.support.provisioning.station_crashes import forked

if TYPE_CHECKING:
    from tests.support.provisioning.postgres import PostgresServer

_STEP_S = 0.1  # a tenth of what the steps of a real board take
_STEPS = "offline", "ca-chain", "key", "write", "register"


@dataclass(frozen=True)
class Stations:
    """What came of it: boards done, those that two had at once, deadlocks, 99 % of the claims."""

    boards: int
    doubled: int
    deadlocks: int
    claim_s: float


def at_once(server: PostgresServer, folder: Path, stations: int, boards: int) -> Stations:
    """Have so many stations do these boards, each of which two of them want."""
    url = server.new_database(f"stations_{stations}")
    open_ledger(url, "first").close()
    uuids = [f"{stations:08}-0000-4000-8000-{board:012}" for board in range(boards)]
    children = []
    for number in range(stations):
        # Its own, and those of the station after it, in an order of its own.
        mine = [*uuids[number::stations], *uuids[(number + 1) % stations :: stations]]
        random.Random(number).shuffle(mine)
        children.append(
            forked(partial(asyncio.to_thread, _work, url, folder / f"{stations}-{number}", mine))
        )
    ended = [os.waitpid(child, 0)[1] for child in children]
    assert ended == [0] * stations
    claims = [
        took for number in range(stations)
        for took in json.loads((folder / f"{stations}-{number}").read_text())
    ]  # fmt: skip
    ledger = open_ledger(url, "judge", writes=False)
    try:
        notes = ledger.select(StepRecord, "ORDER BY id", {})
        deadlocks = ledger.query(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", {}
        )
    finally:
        ledger.close()
    doubled = 0
    at_work: dict[str, str | None] = {}
    for note in notes:
        before = at_work.get(note.uuid)
        doubled += before is not None and before != note.station
        is_last = (note.step, note.state) == (_STEPS[-1], "done")
        at_work[note.uuid] = None if is_last else note.station
    claim_s = quantiles(claims, n=100, method="inclusive")[98]
    return Stations(len(at_work), doubled, int(deadlocks[0][0]), claim_s)


def _work(url: str, told: Path, uuids: list[str]) -> None:
    ledger, took = open_ledger(url, f"{told.name}-{os.getpid()}"), []
    for uuid in uuids:
        run = RunRecord(id=str(uuid4()), uuid=uuid, device_id=uuid, security_tag=10,
                        began_at=datetime.now(UTC))  # fmt: skip
        began = time.perf_counter()
        [claimed] = ledger.together([methodcaller("claim", run)])
        if isinstance(claimed, BoardsLocked):
            continue
        if isinstance(claimed, Exception):
            raise claimed
        took.append(time.perf_counter() - began)
        for step in _STEPS:
            ledger.begin(uuid, step, "10", writes=1)
            time.sleep(_STEP_S)
            ledger.finish(uuid, step)
        ledger.conclude(replace(run, outcome="done", ended_at=datetime.now(UTC)))
        ledger.release(uuid)
    ledger.close()
    told.write_text(json.dumps(took))
