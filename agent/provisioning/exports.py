"""The boards of the ledger as files: CSV for people and services, labels for a printer.

A label is a line of CSV and, with the `labels` extra, a PNG with a QR code.
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from agent.errors import AgentError, UsageError
from agent.files.private_files import FolderUnusable, disk_hint, make_folder
from agent.provisioning.ledger import BoardRecord
from agent.provisioning.planning.goal import RegistrationMethod
from agent.provisioning.record_columns import BOARD, as_json

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
LABEL_HEADING = "device_id,imei,slot,usb_place,label\n"
_PNG_SCALE = 6


def for_spreadsheet(records: Iterable[BoardRecord]) -> Iterator[str]:
    """Yield CSV with a heading that a spreadsheet opens without running any of it."""
    yield _csv([BOARD])
    for record in records:
        cells = as_json(record)
        yield _csv([["" if cells[name] is None else neutral(str(cells[name])) for name in BOARD]])


def for_bulk_onboarding(
    records: Iterable[BoardRecord],
    *,
    sub_type: str = "",
    tags: Sequence[str] = (),
    firmware_types: Sequence[str] = (),
) -> Iterator[str]:
    """Yield CSV rows as OnboardDevices takes them: no heading, the key over several lines.

    Certificate where there is one, else public key; boards without either are left out, and
    every nRF93M1, which a token of its own onboards.
    """
    same = sub_type, "|".join(tags), "|".join(firmware_types)
    for record in records:
        is_module = record.registered_as.startswith(f"{RegistrationMethod.TOKEN.value} ")
        key = record.certificate or record.public_key
        if record.device_id and key and not is_module:
            yield _csv([[record.device_id, *same, key]])


def for_nordic_tools(records: Iterable[BoardRecord]) -> Iterator[str]:
    """Yield the device list of Nordic's tools: device id, modem firmware, IMEI."""
    for record in records:
        yield _csv([[record.device_id, record.firmware, record.imei]])


def neutral(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: one gets an apostrophe before it."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def label_line(record: BoardRecord) -> str:
    """Return one line of CSV for a label printer, as LABEL_HEADING names its columns."""
    cells = record.device_id, record.imei, record.slot, record.usb_place, record.label
    return _csv([[neutral(cell) for cell in cells]])


def _cells(line: str) -> list[str]:
    """Return the cells of one line: a spreadsheet may have put other ones into quotes."""
    return next(csv.reader([line]), [])


def _board_of(line: str) -> list[str]:
    """Return device id and label of a line: the same board, wherever it is.

    A spreadsheet saves an IMEI as it shows a long number, 3.50458E+14.
    """
    cells = _cells(line)
    return cells[:1] + cells[4:]


def write_qr(record: BoardRecord, folder: Path) -> Path:
    """Write DEVICE_ID.png, a QR code of the device id, into `folder`; return its path.

    What a file name may not hold is written as in a URL: two ids have two files.
    """
    import segno

    path = folder / f"{quote(record.device_id, safe='')}.png"
    segno.make(record.device_id, error="m", micro=False).save(str(path), scale=_PNG_SCALE)
    return path


def _append(path: Path, text: str) -> None:
    """Append all of a text, or nothing: where the disk is full, half a line is no label."""
    before = path.stat().st_size if path.exists() else 0
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        with suppress(OSError):
            os.truncate(path, before)
        raise


class Labels:
    """A folder of labels: labels.csv and the QR codes, one for each board however often it is run.

    Raises FolderUnusable, UsageError where the folder cannot be used: before any board is touched.
    """

    def __init__(self, folder: Path) -> None:
        try:
            make_folder(folder)
            self._file = folder / "labels.csv"
            # As a spreadsheet saves it, too: with a byte order mark, or in its own encoding.
            there = self._file.exists()
            self._written = self._file.read_text("utf-8-sig", "replace") if there else ""
        except FolderUnusable as error:
            # Also where it is one for state.
            another = "`--labels FOLDER` names one that can be written"
            error.hint = "; or ".join(filter(None, [error.mend, another]))
            raise
        except OSError as error:
            raise UsageError(f"the labels' folder {folder}: {error.strerror}") from error
        first = self._written.partition("\n")[0]
        if self._written and _cells(first) != _cells(LABEL_HEADING):
            raise UsageError(
                f"{self._file} has no heading, or other columns: an older version, or a "
                "spreadsheet, wrote it",
                hint="name another folder, or move the file away; `provision export` has them all",
            )
        self._folder = folder

    def write(self, record: BoardRecord) -> None:
        """Write a board's label, unless it has one, from whichever slot. Raises AgentError."""
        line = label_line(record)
        if _board_of(line) in map(_board_of, self._written.splitlines()):
            return
        try:
            write_qr(record, self._folder)
            # Another station may have begun the file meanwhile.
            is_begun = self._file.exists() and self._file.stat().st_size
            text = line if is_begun else LABEL_HEADING + line
            if self._written and not self._written.endswith("\n"):  # it was cut off
                text = "\n" + text
            _append(self._file, text)
        except OSError as error:
            again = "the same command again writes the labels that are missing"
            raise AgentError(
                f"the label of {record.device_id} was not written: {error.strerror}",
                hint="; then ".join(filter(None, [disk_hint(error, self._folder), again])),
            ) from error
        self._written += text
