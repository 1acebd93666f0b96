"""The ledger: each step is on disk before the next; SQLite, or PostgreSQL where it is shared."""

from agent.provisioning.ledger.claims import BoardBusy
from agent.provisioning.ledger.ledger import LabelTaken, Ledger
from agent.provisioning.ledger.opening import LedgerError, Migration, migrate_ledger, open_ledger
from agent.provisioning.ledger.reader import LedgerReader
from agent.provisioning.ledger.records import (
    BoardRecord,
    KeyRecord,
    RunRecord,
    StepRecord,
    WorkOrder,
)
from agent.provisioning.ledger.sqlite import LedgerHeld

__all__ = [
    "BoardBusy",
    "BoardRecord",
    "KeyRecord",
    "LabelTaken",
    "Ledger",
    "LedgerError",
    "LedgerHeld",
    "LedgerReader",
    "Migration",
    "RunRecord",
    "StepRecord",
    "WorkOrder",
    "migrate_ledger",
    "open_ledger",
]
