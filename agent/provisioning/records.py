"""The records of the ledger as programs get them: one JSON object, or one line of CSV.

docs/reference/ledger.md explains every column; a test compares it with this file.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from agent.provisioning.ledger.records import (
    BoardRecord,
    KeyRecord,
    Record,
    RunRecord,
    StepRecord,
)

VERSION = 1
"""The version of these columns: a column that goes, or means something else, is a new one."""
BOARD = (
    "device_id",
    "uuid",
    "imei",
    "serial",
    "slot",
    "usb_place",
    "firmware",
    "outcome",
    "last_outcome",
    "reason",
    "conflict",
    "station",
    "made_at",
    "made_station",
    "made_run",
    "security_tag",
    "certificate_serial",
    "registered_as",
    "writes",
    "updated_at",
    "change",
)
KEY = (
    "id",
    "uuid",
    "security_tag",
    "key_digest",
    "certificate_serial",
    "registered_key",
    "registered_as",
    "request_id",
    "made_at",
    "run",
    "retired_at",
    "retired_because",
    "change",
)
RUN = (
    "id",
    "uuid",
    "imei",
    "device_id",
    "serial",
    "slot",
    "usb_place",
    "port",
    "station",
    "operator",
    "lot",
    "product",
    "cellagent",
    "firmware",
    "security_tag",
    "began_at",
    "ended_at",
    "outcome",
    "step",
    "exit",
    "reason_code",
    "reason",
    "consent",
    "writes",
    "timings",
    "change",
)
STEP = ("id", "run", "uuid", "at", "station", "step", "state", "detail", "change")
KINDS: dict[type[Record], tuple[str, tuple[str, ...]]] = {
    BoardRecord: ("board", BOARD),
    KeyRecord: ("key", KEY),
    RunRecord: ("run", RUN),
    StepRecord: ("step", STEP),
}
"""The name of each kind of record, and its columns. What claims a board, and PEM, is in none."""


def as_json(record: Record) -> dict[str, object]:
    """Return a record: `kind`, and its columns; null for a number or a time that is not known."""
    kind, columns = KINDS[type(record)]
    return {"kind": kind, **{name: _plain(name, getattr(record, name)) for name in columns}}


def time_text(when: datetime) -> str:
    """Return a time in ISO 8601, in UTC."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds")


def timings(run: RunRecord) -> dict[str, float]:
    """Return the seconds of each step of a run that has ended, in the order of the steps."""
    found: dict[str, float] = json.loads(run.timings) if run.timings else {}
    return found


def _plain(name: str, value: object) -> object:
    if name == "timings":
        return json.loads(str(value)) if value else None
    return time_text(value) if isinstance(value, datetime) else value
