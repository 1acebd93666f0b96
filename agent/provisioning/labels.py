"""A label for each board: a line of CSV, and with the `labels` extra a PNG with a QR code."""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from pathlib import Path

from agent.config.private_files import make_private_folder
from agent.errors import AgentError, UsageError
from agent.provisioning.exports import neutral
from agent.provisioning.ledger.store import BoardRecord

_PNG_SCALE = 6


def label_line(record: BoardRecord) -> str:
    """Return what a label printer takes, one line of CSV: device id, IMEI, slot, USB place."""
    line = io.StringIO()
    cells = record.device_id, record.imei, record.slot, record.usb_place
    csv.writer(line, lineterminator="\n").writerow([neutral(cell) for cell in cells])
    return line.getvalue()


def write_qr(record: BoardRecord, folder: Path) -> Path:
    """Write DEVICE_ID.png, a QR code of the device id, into `folder`; return its path."""
    import segno

    # A device id may hold what a file name may not.
    name = "".join(char if char.isalnum() or char in "-_." else "_" for char in record.device_id)
    path = folder / f"{name.lstrip('.') or 'device'}.png"
    segno.make(record.device_id, error="m", micro=False).save(str(path), scale=_PNG_SCALE)
    return path


class Labels:
    """A folder of labels: labels.csv and the QR codes. A board that is there already stays once.

    Raises UsageError where the extra is missing: before any board is touched, not after.
    """

    def __init__(self, folder: Path) -> None:
        if find_spec("segno") is None:
            raise UsageError(
                "labels with a QR code need an extra", hint="pip install 'cellagent[labels]'"
            )
        try:
            make_private_folder(folder)
            self._file = folder / "labels.csv"
            self._written = self._file.read_text("utf-8") if self._file.exists() else ""
        except OSError as error:
            raise UsageError(f"the labels' folder {folder}: {error.strerror}") from error
        self._folder = folder

    def write(self, record: BoardRecord) -> None:
        """Write a board's label. Raises AgentError."""
        line = label_line(record)
        if line in self._written.splitlines(keepends=True):
            return
        try:
            write_qr(record, self._folder)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise AgentError(f"the label of {record.device_id}: {error.strerror}") from error
        self._written += line
