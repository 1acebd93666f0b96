"""A ledger with two boards, for the commands that read it."""

from __future__ import annotations

import pytest
from ledgers import OTHER, UUID, opened

from agent.config.paths import state_dir


@pytest.fixture
def two_boards() -> None:
    """Write a ledger with a board that is done, and one that was refused."""
    folder = state_dir()
    folder.mkdir(parents=True, mode=0o700)
    ledger = opened(str(folder / "ledger.sqlite"))
    for uuid, outcome, reason in ((UUID, "done", ""), (OTHER, "refused", "firmware too old")):
        ledger.claim(uuid, device_id=f"nrf-{uuid[-3:]}", slot="A1" if outcome == "done" else "")
        ledger.begin(uuid, "find")
        ledger.conclude(uuid, outcome, "find", reason, 3)
        ledger.release(uuid)
    ledger.close()
