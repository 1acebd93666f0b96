"""The identity of a kit as far as it is known, and the record that outlives the agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from agent.config.private_files import make_private_folder, private_opener, write_private
from agent.config.profile import KitSettings
from agent.config.trusted_places import require_trusted_folder
from agent.daemon.kit.first_contact import Contact
from agent.errors import AgentError
from agent.observability.api.resource_names import to_slug, to_version
from agent.observability.ingest import device_identity
from at.ports.usb import KitModel

_LARGEST_HISTORY = 1024 * 1024  # bytes; then the older half goes
_APPLICATION = "app"  # what the SDK of these kits calls the application by default


class KitIdentity:
    """The names of the kit that the agent calls `name`; `kit` is its part of the profile."""

    def __init__(self, name: str, kit: Callable[[], KitSettings], store: KitStore) -> None:
        self._name = name
        self._store = store
        self._board = ""
        self._application = ""
        self.device = device_identity.IdentityTracker(
            lambda: device_identity.profile_identity(kit()),
            self._fallback,
            reported=store.record.names,
            on_change=self._store_names,
        )

    def set_usb_model(self, model: KitModel | None) -> None:
        """Set the model that its USB identity names; None where that is no known kit's."""
        self._board = model.board if model else ""

    def update(self, contact: Contact) -> None:
        """Store what the modem answered. Raises AgentError where the disk does not take it."""
        record, imei = self._store.record, str(contact.value("imei") or "")
        if imei and record.imei not in {"", imei}:
            self.device.forget()  # another kit is at this port
            record = KitRecord()
        self._application = contact.application
        self._store.update(
            device_id=contact.device_id or record.device_id,
            imei=imei or record.imei,
            model=str(contact.value("model") or ""),
            credentials=record.credentials,
        )

    def forget_software(self) -> None:
        """Forget all versions: the kit may run other software now."""
        self.device.forget_software()
        self._application = ""

    def _fallback(self) -> device_identity.PartialIdentity:
        """Return what modem and USB say, else the agent's name for the kit."""
        record = self._store.record
        return device_identity.PartialIdentity(
            to_slug(record.device_id or record.imei or self._name),
            self._board or to_slug(record.model.partition("-")[0].lower()),
            _APPLICATION if self._application else "",
            to_version(self._application),
        )

    def _store_names(self, names: device_identity.PartialIdentity) -> None:
        with suppress(AgentError):  # the disk is full: the kit reports them again
            self._store.update(names=names)


class KitRecord(msgspec.Struct, frozen=True):
    """The stored record of a kit. "" and None stand for what was never known."""

    device_id: str = ""
    imei: str = ""
    model: str = ""
    online: bool = False
    """Whether the modem is to be on after a restart; not kept where the agent is stopped."""
    names: device_identity.PartialIdentity = device_identity.PartialIdentity()
    """Its names in the events that it sends itself to the observability service."""
    credentials: Mapping[int, tuple[int, ...]] = {}
    """Security tag -> the types of credentials that were seen in it."""
    position: dict[str, object] | None = msgspec.field(name="place", default=None)
    """The last position that was found, as `locate --json` prints it."""
    reported: dict[str, object] | None = None
    """The last position that was reported to the device cloud."""


class KitStore:
    """The files of one kit: `kits/NAME.json` and `kits/NAME.positions.jsonl`, private.

    Raises UntrustedPlace where others could change them.
    """

    def __init__(self, state_dir: Path, name: str) -> None:
        folder = state_dir / "kits"
        require_trusted_folder(folder)
        stem = quote(name, safe="").replace(".", "%2E")[:200]
        self._file = folder / f"{stem}.json"
        self._positions = folder / f"{stem}.positions.jsonl"
        self.record = self._read()

    def update(self, **changes: object) -> None:
        """Change fields of the record. Raises AgentError where the disk does not take it."""
        record = msgspec.structs.replace(self.record, **changes)
        if record == self.record:
            return
        self.record = record
        try:
            write_private(self._file, msgspec.json.encode(record))
        except OSError as error:
            raise AgentError(f"{self._file}: {error.strerror}") from error

    def append_position(self, position: dict[str, object]) -> None:
        """Append a position to the history; the oldest go when it is long. Raises AgentError."""
        line = json.dumps(position).encode() + b"\n"
        try:
            make_private_folder(self._positions.parent)
            before = self._positions.read_bytes() if self._positions.exists() else b""
            if len(before) + len(line) > _LARGEST_HISTORY:
                before = before[len(before) // 2 :].partition(b"\n")[2]
                write_private(self._positions, before + line)
            else:
                with open(self._positions, "ab", opener=private_opener) as file:
                    file.write(line)
        except OSError as error:
            raise AgentError(f"{self._positions}: {error.strerror}") from error

    def _read(self) -> KitRecord:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=KitRecord)
        except (OSError, msgspec.DecodeError, ValueError):
            return KitRecord()  # never contacted, or damaged: the kit reports it again
