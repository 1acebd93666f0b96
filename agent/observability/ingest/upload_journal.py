"""What is kept of an upload that a break may end: where it goes, and which parts are there."""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from agent.config.private_files import write_private

if TYPE_CHECKING:
    from pathlib import Path

RETENTION_S = 30 * 24 * 3600.0
"""Seconds after which an upload is forgotten."""


class UploadProgress(msgspec.Struct, kw_only=True):
    """Where a file goes, and how much of it is there."""

    token: str
    url: str = ""
    """Of the whole; "" where it goes in parts."""
    part_urls: list[str] = []
    complete_url: str = ""
    tags: list[str] = []
    """The ETags of the parts that are there, from the first on."""
    whole: bool = False
    """All bytes are there: what is missing is the commit."""


class _Record(msgspec.Struct, kw_only=True):
    place: UploadProgress | None = None
    committed: str = ""


class UploadJournal:
    """The record of one upload; without a `path` it is kept in memory only.

    A record that cannot be read, or not be written, costs an upload from the beginning at most.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._record = _Record()
        if path is not None:
            with suppress(OSError, msgspec.DecodeError):
                self._record = msgspec.json.decode(path.read_bytes(), type=_Record)

    @property
    def place(self) -> UploadProgress | None:
        """Where the file goes; None where nothing was begun."""
        return self._record.place

    @property
    def committed(self) -> str:
        """When it was committed, ISO 8601; "" if it never was."""
        return self._record.committed

    def keep(self, place: UploadProgress | None) -> None:
        """Remember `place` as it now is; None: begin anew the next time."""
        self._write(_Record(place=place))

    def commit(self, when: str) -> None:
        """Remember that the service has the file since `when`."""
        self._write(_Record(committed=when))

    def _write(self, record: _Record) -> None:
        self._record = record
        if self._path is not None:
            with suppress(OSError):
                write_private(self._path, msgspec.json.encode(record))


def journal_name(*parts: object) -> str:
    """Return the file name of the upload that `parts` tell from every other."""
    text = msgspec.json.encode([str(part) for part in parts])
    return f"{hashlib.sha256(text).hexdigest()}.json"


def remove_old_records(folder: Path) -> None:
    """Remove the records of uploads that are older than KEPT_S."""
    with suppress(OSError):
        for path in folder.glob("*.json"):
            if path.stat().st_mtime < time.time() - RETENTION_S:
                path.unlink()
