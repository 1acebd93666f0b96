"""What is remembered of a kit between two runs: who it was, where it was last seen."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from agent.config.private import make_private_folder, write_private
from agent.errors import AgentError
from agent.observability.device_names import Names

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST_HISTORY = 1024 * 1024  # bytes; then the older half goes


class Remembered(msgspec.Struct, frozen=True):
    """The file of a kit. "" and None stand for what was never known."""

    device_id: str = ""
    imei: str = ""
    model: str = ""
    names: Names = Names()
    """What its own events call it at the observability service."""
    place: dict[str, Any] | None = None
    """The last position that was found, as `locate --json` gives it."""
    reported: dict[str, Any] | None = None
    """The last position that the device cloud was told."""


class KitMemory:
    """The files of one kit: `FOLDER/NAME.json` and `FOLDER/NAME.positions.jsonl`, private."""

    def __init__(self, state_dir: Path, name: str) -> None:
        folder = state_dir / "kits"
        stem = quote(name, safe="").replace(".", "%2E")[:200]
        self._file = folder / f"{stem}.json"
        self._positions = folder / f"{stem}.positions.jsonl"
        self.known = self._read()

    def learn(self, **changes: Any) -> None:
        """Remember. Raises AgentError where the disk does not take it."""
        known = msgspec.structs.replace(self.known, **changes)
        if known == self.known:
            return
        self.known = known
        try:
            write_private(self._file, msgspec.json.encode(known))
        except OSError as error:
            raise AgentError(f"{self._file}: {error.strerror}") from error

    def add_position(self, position: dict[str, object]) -> None:
        """Append a position to the history; the oldest go when it is long. Raises AgentError."""
        line = json.dumps(position).encode() + b"\n"
        try:
            make_private_folder(self._positions.parent)
            before = self._positions.read_bytes() if self._positions.exists() else b""
            if len(before) + len(line) > _LARGEST_HISTORY:
                before = before[len(before) // 2 :].partition(b"\n")[2]
                write_private(self._positions, before + line)
            else:
                self._append(line)
        except OSError as error:
            raise AgentError(f"{self._positions}: {error.strerror}") from error

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(os.open(self._positions, flags, 0o600), "wb") as file:
            file.write(line)

    def _read(self) -> Remembered:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Remembered)
        except (OSError, msgspec.DecodeError, ValueError):
            return Remembered()  # never seen, or damaged: the kit tells it again
