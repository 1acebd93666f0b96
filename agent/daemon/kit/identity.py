"""What is remembered of a kit between two runs: who it was, where it was last seen."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from agent.config.private_files import make_private_folder, write_private
from agent.errors import AgentError
from agent.observability.api.slugs import as_slug, as_version
from agent.observability.ingest.device_identity import (
    IdentityTracker,
    PartialIdentity,
    profile_identity,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.config.profile import KitSettings
    from agent.daemon.kit.first_contact import Contact
    from at.ports.usb import KitModel


_LARGEST_HISTORY = 1024 * 1024  # bytes; then the older half goes


class Remembered(msgspec.Struct, frozen=True):
    """The file of a kit. "" and None stand for what was never known."""

    device_id: str = ""
    imei: str = ""
    model: str = ""
    names: PartialIdentity = PartialIdentity()
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


_APPLICATION = "app"  # what the SDK of these kits calls the application, unless it is told


class KitNames:
    """The names of the kit that the agent calls `name`; `kit` is its part of the profile."""

    def __init__(self, name: str, kit: Callable[[], KitSettings], memory: KitMemory) -> None:
        self._name = name
        self._memory = memory
        self._board = ""
        self._application = ""
        self.device = IdentityTracker(
            lambda: profile_identity(kit()),
            self._otherwise,
            reported=memory.known.names,
            on_change=self._learned,
        )

    def plugged_in(self, model: KitModel | None) -> None:
        """Take what its USB identity says; None where that is no known kit's."""
        self._board = model.board if model else ""

    def met(self, contact: Contact) -> None:
        """Remember what the modem said. Raises AgentError where the disk does not take it."""
        known, imei = self._memory.known, str(contact.told("imei") or "")
        if imei and known.imei not in {"", imei}:
            self.device.forget()  # another kit is at this port
            known = Remembered()
        self._application = contact.application
        self._memory.learn(
            device_id=contact.device_id or known.device_id,
            imei=imei or known.imei,
            model=str(contact.told("model") or ""),
        )

    def new_software(self) -> None:
        """Trust no version any more that was told before."""
        self.device.forget_software()
        self._application = ""

    def _otherwise(self) -> PartialIdentity:
        """Return what the modem and the USB tell; a kit that never told has its name here."""
        known = self._memory.known
        return PartialIdentity(
            as_slug(known.device_id or known.imei or self._name),
            self._board or as_slug(known.model.partition("-")[0].lower()),
            _APPLICATION if self._application else "",
            as_version(self._application),
        )

    def _learned(self, names: PartialIdentity) -> None:
        with suppress(AgentError):  # the disk is full: the kit tells it again
            self._memory.learn(names=names)
