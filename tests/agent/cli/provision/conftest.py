"""Ledgers: empty ones of both kinds, and one with two boards and three runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.files.paths import state_dir
from tests.support.provisioning.ledgers import NOW, OTHER, UUID, opened, run_of
from tests.support.provisioning.postgres import postgres_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with postgres_cluster() as url:
        yield url


@pytest.fixture
def shared_ledger(cluster: str, tmp_path: Path) -> str:
    """Return the address of an empty ledger at a server."""
    import psycopg

    name = f"tray_{os.getpid()}_{abs(hash(str(tmp_path))) % 10**8}"
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return cluster.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest) -> str:
    """Return the address of an empty ledger, "" for the usual file."""
    return request.getfixturevalue("shared_ledger") if request.param == "postgresql" else ""


@pytest.fixture
def two_boards() -> None:
    """Write a board that is done, one that was refused, and a slot that never answered."""
    folder = state_dir()
    folder.mkdir(parents=True, mode=0o700)
    ledger = opened(str(folder / "ledger.sqlite"))
    for uuid, outcome, code, reason in (
        (UUID, "done", "", ""),
        (OTHER, "refused", "old-firmware", "firmware too old"),
    ):
        run = run_of(
            uuid,
            device_id=f"nrf-{uuid[-3:]}",
            slot="A1" if outcome == "done" else "",
            lot="L7",
            port="/dev/ttyACM7",
        )
        ledger.claim(run)
        ledger.begin(uuid, "key", writes=3)
        ended = NOW + timedelta(seconds=7)
        ledger.conclude(
            replace(run, outcome=outcome, step="key", reason_code=code, reason=reason, writes=3,
                    ended_at=ended, exit=0 if outcome == "done" else 4, timings='{"key": 6.5}')
        )  # fmt: skip
        ledger.release(uuid)
    ledger.record_run(
        run_of("", slot="A3", outcome="failed", step="identity", exit=3, ended_at=NOW,
               reason_code="no-answer", reason="it does not answer")
    )  # fmt: skip
    ledger.close()
