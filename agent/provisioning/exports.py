"""The ledger as files: what the service's bulk onboarding takes, and what a person opens."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from agent.provisioning.ledger.store import BoardRecord

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = (
    "device_id",
    "uuid",
    "imei",
    "slot",
    "usb_place",
    "firmware",
    "outcome",
    "reason",
    "station",
    "writes",
    "updated_at",
)


def for_spreadsheet(records: Iterable[BoardRecord]) -> str:
    """Return CSV with a heading that a spreadsheet opens without running any of it."""
    rows = [COLUMNS] + [
        tuple(neutral(str(getattr(record, column) or "")) for column in COLUMNS)
        for record in records
    ]
    return _csv(rows)


def for_bulk_onboarding(
    records: Iterable[BoardRecord],
    *,
    sub_type: str = "",
    tags: Sequence[str] = (),
    firmware_types: Sequence[str] = (),
) -> str:
    """Return CSV rows as OnboardDevices takes them: no heading, the key over several lines.

    Certificate where there is one, else public key; boards without either are left out.
    """
    rows = [
        (record.device_id, sub_type, "|".join(tags), "|".join(firmware_types), key)
        for record in records
        if record.device_id and (key := record.certificate or record.public_key)
    ]
    return _csv(rows)


def for_nordic_tools(records: Iterable[BoardRecord]) -> str:
    """Return the device list of Nordic's tools: device id, modem firmware, IMEI."""
    return _csv((record.device_id, record.firmware, record.imei) for record in records)


def neutral(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe goes before it."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def restored(cell: str) -> str:
    """Return a cell as it was before `neutral`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
