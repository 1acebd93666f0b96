"""The ledger: each step is on disk before the next; SQLite, or PostgreSQL where it is shared."""

from agent.provisioning.ledger.ledger import BoardBusy, BoardRecord, Ledger, StepRecord
from agent.provisioning.ledger.opening import LedgerError, open_ledger
from agent.provisioning.ledger.sqlite import LedgerHeld

__all__ = [
    "BoardBusy",
    "BoardRecord",
    "Ledger",
    "LedgerError",
    "LedgerHeld",
    "StepRecord",
    "open_ledger",
]
