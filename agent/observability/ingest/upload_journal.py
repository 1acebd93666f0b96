"""The record of an unfinished upload on disk: its URLs, and which parts have arrived."""

import hashlib
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from agent.files.private_files import write_private
from agent.files.trusted_places import require_trusted_folder

RETENTION_S = 30 * 24 * 3600.0
"""Seconds after which the record of an upload is removed."""


class UploadProgress(msgspec.Struct, kw_only=True):
    """The URLs of an upload, and how much of the file has arrived."""

    token: str
    url: str = ""
    """For the whole file; "" if it is sent in parts."""
    part_urls: list[str] = []
    complete_url: str = ""
    tags: list[str] = []
    """The ETags of the parts that have arrived, from the first on."""
    whole: bool = False
    """All bytes have arrived: only the commit is missing."""
    commit_sent: bool = False
    """It may have arrived: its answer did not."""


class _Record(msgspec.Struct, kw_only=True):
    # The name on disk is that of version 0.1.0, whose records are read as well.
    progress: UploadProgress | None = msgspec.field(name="place", default=None)
    committed: str = ""


class UploadJournal:
    """The record of one upload; without a `path` it is in memory only.

    If the record cannot be read or written, the next run begins the upload anew. Raises
    UntrustedPlace where others could change it: it says where the file is sent.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._record = _Record()
        if path is not None:
            require_trusted_folder(path.parent)
            with suppress(OSError, msgspec.DecodeError):
                self._record = msgspec.json.decode(path.read_bytes(), type=_Record)

    @property
    def progress(self) -> UploadProgress | None:
        """How far the upload is; None if none was begun."""
        return self._record.progress

    @property
    def committed(self) -> str:
        """When it was committed, ISO 8601; "" if it never was."""
        return self._record.committed

    def save(self, progress: UploadProgress | None) -> None:
        """Store `progress` as it is now; None to begin anew the next time."""
        self._write(_Record(progress=progress))

    def mark_committed(self, when: str) -> None:
        """Record that the service has had the file since `when`, ISO 8601."""
        self._write(_Record(committed=when))

    def _write(self, record: _Record) -> None:
        self._record = record
        if self._path is not None:
            with suppress(OSError):
                write_private(self._path, msgspec.json.encode(record))


def journal_name(*parts: object) -> str:
    """Return the file name for the record of the upload that `parts` identify."""
    text = msgspec.json.encode([str(part) for part in parts])
    return f"{hashlib.sha256(text).hexdigest()}.json"


def remove_old_records(folder: Path) -> None:
    """Remove the records of uploads that are older than RETENTION_S."""
    with suppress(OSError):
        for path in folder.glob("*.json"):
            if path.stat().st_mtime < time.time() - RETENTION_S:
                path.unlink()
