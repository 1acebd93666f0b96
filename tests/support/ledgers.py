"""Ledgers as tests open them: two boards, one time."""

from __future__ import annotations

from datetime import UTC, datetime

from agent.provisioning.ledger import Ledger, open_ledger

UUID = "50503041-3633-4261-803d-1e2b8f70111a"
OTHER = "50503041-3633-4261-803d-1e2b8f70222b"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def opened(address: str, station: str = "one") -> Ledger:
    return open_ledger(address, station, now=lambda: NOW)
