"""A label for each board: a line of CSV, and a PNG with a QR code (the `labels` extra)."""

from __future__ import annotations

from pathlib import Path

from agent.errors import UsageError
from agent.provisioning.ledger.store import BoardRecord
from agent.provisioning.tables import neutral

_PNG_SCALE = 6


def label_line(record: BoardRecord) -> str:
    """Return what a label printer takes: device id, IMEI, slot."""
    return ",".join(neutral(cell) for cell in (record.device_id, record.imei, record.slot))


def write_qr(record: BoardRecord, folder: Path) -> Path:
    """Write DEVICE_ID.png, a QR code of the device id, into `folder`; return its path."""
    try:
        import segno
    except ImportError as error:
        raise UsageError(
            "labels with a QR code need an extra", hint="pip install 'cellagent[labels]'"
        ) from error
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A device id may hold what a file name may not.
    name = "".join(char if char.isalnum() or char in "-_." else "_" for char in record.device_id)
    path = folder / f"{name.lstrip('.') or 'device'}.png"
    segno.make(record.device_id, error="m", micro=False).save(str(path), scale=_PNG_SCALE)
    return path
