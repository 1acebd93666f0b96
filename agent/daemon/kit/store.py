"""What outlives the agent of a kit: its record, its positions, a core dump that is not whole."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from agent.errors import AgentError
from agent.files.paths import file_name_of
from agent.files.private_files import make_private_folder, private_opener, write_private
from agent.files.trusted_places import UntrustedPlace, require_trusted_folder
from agent.observability.api.resource_names import to_slug
from agent.observability.ingest.device_identity import PartialIdentity
from at.ports.usb import UsbPort, same_port

_LARGEST_HISTORY = 1024 * 1024  # bytes; then the older half goes


class IdOrigin(StrEnum):
    """Where the id of a kit comes from; `status` shows the value."""

    PROFILE = "kit.device_id"
    UUID = "uuid"
    IMEI = "imei"
    OWN_EVENTS = "own-events"
    """Of a kit that an earlier version listed under the name that its own events have."""


class KitRecord(msgspec.Struct, frozen=True):
    """The stored record of a kit. "" and None stand for what was never known."""

    device_id: str = ""
    """The modem's UUID, under which the device cloud knows it."""
    imei: str = ""
    model: str = ""
    online: bool = False
    """Whether the modem is to be on after a restart; not kept where the agent is stopped."""
    known_id: str = ""
    """The id at the services that the kit keeps."""
    known_from: IdOrigin | None = None
    port: str = ""
    usb_serial: str = ""
    """Where it was last contacted."""
    back_after: str = ""
    """The last FOTA job after which the kit was seen on the network."""
    names: PartialIdentity = PartialIdentity()
    """Its names in the events that it sends itself to the observability service."""
    credentials: Mapping[int, tuple[int, ...]] = {}
    """Security tag -> the types of credentials that were seen in it."""
    position: dict[str, object] | None = msgspec.field(name="place", default=None)
    """The last position that was found, as `locate --json` prints it."""
    reported: dict[str, object] | None = None
    """The last position that was reported to the device cloud."""


class KitStore:
    """The private files of one kit of a profile: NAME.json, NAME.positions.jsonl, NAME.coredump.

    Each agent, so each profile, has its own: two of them may call their kits by the same name.
    Raises UntrustedPlace where others could change them.
    """

    def __init__(self, state_dir: Path, profile: str, name: str) -> None:
        self.state_dir = state_dir
        folder = kits_folder(state_dir, profile)
        require_trusted_folder(folder)
        files = [f"{file_name_of(name)}.{end}" for end in ("json", "positions.jsonl", "coredump")]
        self._file, self._positions, self._dump = (folder / file for file in files)
        if not self._file.exists():
            self._take_over([folder.parent / file for file in files], folder)
        self.record = self._read()
        self._is_on_disk = True

    def update(self, **changes: object) -> None:
        """Change fields of the record. Raises AgentError where the disk does not take the change.

        What it did not take is written by a later call, which fails only where it changes more.
        """
        record = msgspec.structs.replace(self.record, **changes)
        changed = record != self.record
        if not changed and self._is_on_disk:
            return
        self.record, self._is_on_disk = record, False
        try:
            write_private(self._file, msgspec.json.encode(record))
            self._is_on_disk = True
        except OSError as error:
            if changed:
                raise AgentError(f"{self._file}: {error.strerror}") from error

    def append_position(self, position: dict[str, object]) -> None:
        """Append a position to the history; the oldest go when it is long. Raises AgentError."""
        line = json.dumps(position).encode() + b"\n"
        try:
            make_private_folder(self._positions.parent)
            size = self._positions.stat().st_size if self._positions.exists() else 0
            if size + len(line) > _LARGEST_HISTORY:
                before = self._positions.read_bytes()[size // 2 :].partition(b"\n")[2]
                write_private(self._positions, before + line)
            else:
                with open(self._positions, "ab", opener=private_opener) as file:
                    file.write(line)
        except OSError as error:
            raise AgentError(f"{self._positions}: {error.strerror}") from error

    def keep_dump(self, data: bytes | bytearray) -> Path:
        """Store a core dump that is not whole in place of the one before. Raises AgentError."""
        try:
            write_private(self._dump, bytes(data))
        except OSError as error:
            raise AgentError(f"{self._dump}: {error.strerror}") from error
        return self._dump

    def _take_over(self, files: list[Path], folder: Path) -> None:
        """Move here what an earlier version kept of a kit of this name, of any profile."""
        with suppress(OSError, UntrustedPlace):
            for file in filter(Path.exists, reversed(files)):  # what says that it is done, last
                require_trusted_folder(file.parent)
                make_private_folder(folder)
                file.replace(folder / file.name)

    def _read(self) -> KitRecord:
        try:
            return _record_in(self._file)
        except (OSError, msgspec.DecodeError, ValueError):
            return KitRecord()  # never contacted, or damaged: the kit reports it again


def kits_folder(state_dir: Path, profile: str) -> Path:
    """Return the folder with the files of a profile's kits."""
    return state_dir / "kits" / file_name_of(profile)


def names_of(state_dir: Path, profile: str, device_id: str) -> PartialIdentity:
    """Return what the own events of a kit have named, as `run` recorded it; nothing of another."""
    for record in _records(kits_folder(state_dir, profile)):
        if record.known_id == device_id:
            return record.names
    return PartialIdentity()


def _records(folder: Path) -> Iterator[KitRecord]:
    """Yield the records in a folder that can be read, what was written last first."""
    found: list[tuple[float, KitRecord]] = []
    for file in folder.rglob("*.json"):
        with suppress(OSError, msgspec.DecodeError, ValueError):
            found.append((file.stat().st_mtime, _record_in(file)))
    for _, record in sorted(found, key=lambda one: one[0], reverse=True):
        yield record


def _record_in(file: Path) -> KitRecord:
    """Return a stored record; that of an earlier version with the id that it was listed under."""
    record = msgspec.json.decode(file.read_bytes(), type=KitRecord)
    if record.known_id or record.port or not (record.imei or record.device_id):
        return record
    for known_id, origin in (
        (record.names.device_serial, IdOrigin.OWN_EVENTS),
        (record.device_id, IdOrigin.UUID),
        (record.imei, IdOrigin.IMEI),
    ):
        if known_id:
            record = msgspec.structs.replace(record, known_id=to_slug(known_id), known_from=origin)
            break
    return record


def record_at(folder: Path, port: str, usb: UsbPort | None) -> KitRecord | None:
    """Return the record of the kit that `run` last spoke to on a port, None for none.

    `folder` is that of a profile's kits, or the one above it, for those of any profile.

    A kit with a known USB identity is found by that, whatever its port is called now. Raises
    UntrustedPlace where others could change the records.
    """
    require_trusted_folder(folder)
    for record in _records(folder):
        by_usb = usb is not None or bool(record.usb_serial)
        if record.port and (
            usb is not None and record.usb_serial == usb.serial
            if by_usb
            else same_port(record.port, port)
        ):
            return record
    return None
