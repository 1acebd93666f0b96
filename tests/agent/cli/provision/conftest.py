"""A ledger with two boards, for the commands that read it."""

from __future__ import annotations

import pytest
from ledgers import OTHER, UUID, ended, opened, run_of

from agent.config.paths import state_dir


@pytest.fixture
def two_boards() -> None:
    """Write a ledger with a board that is done, and one that was refused."""
    folder = state_dir()
    folder.mkdir(parents=True, mode=0o700)
    ledger = opened(str(folder / "ledger.sqlite"))
    for uuid, outcome, reason in ((UUID, "done", ""), (OTHER, "refused", "firmware too old")):
        slot = "A1" if outcome == "done" else ""
        run = run_of(uuid, device_id=f"nrf-{uuid[-3:]}", slot=slot)
        ledger.claim(run)
        ledger.begin(uuid, "find", writes=3)
        ledger.conclude(ended(run, outcome, step="find", reason=reason))
        ledger.release(uuid)
    ledger.close()
