"""Ledgers as tests open them: two boards, one time, and a run that begins."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from agent.provisioning.ledger import Ledger, RunRecord, open_ledger

UUID = "50503041-3633-4261-803d-1e2b8f70111a"
OTHER = "50503041-3633-4261-803d-1e2b8f70222b"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def opened(address: str, station: str = "one") -> Ledger:
    return open_ledger(address, station, now=lambda: NOW)


def run_of(uuid: str = UUID, **columns: Any) -> RunRecord:
    given = {"id": str(uuid4()), "began_at": NOW, "security_tag": 10} | columns
    return RunRecord(uuid=uuid, **given)


def ended(run: RunRecord, outcome: str, **columns: Any) -> RunRecord:
    return replace(run, outcome=outcome, ended_at=NOW, **columns)
