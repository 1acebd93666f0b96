"""The records of the ledger as programs get them: one JSON object, or one line of CSV.

docs/reference/ledger.md explains every column; a test compares it with this file.
"""

import json
from datetime import UTC, datetime

from agent.provisioning.ledger.records import BoardRecord, KeyRecord, Record, RunRecord, StepRecord

VERSION = 2
"""The version of these columns: a column that goes, or means something else, is a new one."""
BOARD = (
    "device_id",
    "uuid",
    "imei",
    "serial",
    "slot",
    "usb_place",
    "label",
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
_PEM = {"public_key", "certificate"}
KINDS: dict[type[Record], tuple[str, tuple[str, ...]]] = {
    BoardRecord: ("board", BOARD),
    KeyRecord: ("key", tuple(name for name in KeyRecord.__struct_fields__ if name not in _PEM)),
    RunRecord: ("run", RunRecord.__struct_fields__),
    StepRecord: ("step", StepRecord.__struct_fields__),
}
"""The name of each kind of record, and its columns: no PEM, and nothing that claims a board."""


def as_json(record: Record) -> dict[str, object]:
    """Return a record: `kind`, and its columns; null for a number or a time that is not known."""
    kind, columns = KINDS[type(record)]
    return {"kind": kind, **{name: _plain(name, getattr(record, name)) for name in columns}}


def timings(run: RunRecord) -> dict[str, float]:
    """Return the seconds of each step of a run that has ended, in the order of the steps."""
    found: dict[str, float] = json.loads(run.timings) if run.timings else {}
    return found


def _plain(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    if name == "timings":
        return json.loads(str(value)) if value else None
    return value
