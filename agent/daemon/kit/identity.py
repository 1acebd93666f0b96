"""The identity of a kit as far as it is known, and the record that outlives the agent.

A kit has one id at the services. `kit.device_id` pins it; else a kit keeps the one that its record
has, and a new kit gets its modem's UUID, or its IMEI where the modem tells no UUID. Until then all
that is taken of the kit waits in the outbox for the id. So it does from when a port is opened until
the modem has answered, unless USB tells that it is the same kit: another one may be there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent.config.profile import KitSettings
from agent.daemon.snapshot import Finding
from agent.errors import AgentError
from agent.files.paths import file_name_of
from agent.files.private_files import make_private_folder, private_opener, write_private
from agent.files.trusted_places import UntrustedPlace, require_trusted_folder
from agent.observability.api.resource_names import to_slug, to_version
from agent.observability.ingest import device_identity
from agent.outbox.items import unnamed
from at.ports.usb import UsbPort, same_port

if TYPE_CHECKING:
    from agent.daemon.kit.first_contact import Contact

DOUBT_S = 300.0
"""A kit whose modem does not answer for so long is taken for the one that was there before."""
_LARGEST_HISTORY = 1024 * 1024  # bytes; then the older half goes
_APPLICATION = "app"  # what the SDK of these kits calls the application by default


class IdOrigin(StrEnum):
    """Where the id of a kit comes from; `status` shows the value."""

    PROFILE = "kit.device_id"
    UUID = "uuid"
    IMEI = "imei"
    OWN_EVENTS = "own-events"
    """Of a kit that an earlier version listed under the name that its own events have."""


class KitIdentity:
    """The names of the kit that the agent calls `name`; `kit` is its part of the profile."""

    def __init__(
        self,
        name: str,
        kit: KitSettings,
        store: KitStore,
        name_device: Callable[[str, str], None] = lambda _unnamed, _device: None,
    ) -> None:
        """`name_device` tells the outbox which device what waits as `unnamed` is; "": unknown."""
        self._kit = kit
        self._store = store
        self._unnamed = unnamed(name)
        self._name_device = name_device
        self._usb: UsbPort | None = None
        self._application = ""
        self.on_names: Callable[[], None] = lambda: None
        """Is called whenever the kit's own events name it otherwise than before."""
        self.on_other: Callable[[], None] = lambda: None
        """Is called when a modem has answered that is another kit's than the one before."""
        self.on_doubt: Callable[[], None] = lambda: None
        """Is called when another kit may be here: a port was opened, or a kit starts behind one."""
        self._doubted_since: float | None = None
        """When a port was first opened after the modem had answered; None while it is the kit."""
        self._is_doubted = False
        self.device = device_identity.IdentityTracker(
            device_identity.profile_identity(kit),
            self._fallback,
            reported=store.record.names,
            on_change=self._store_names,
            unnamed=self._unnamed,
        )
        self._tell_outbox()

    @property
    def device_id(self) -> str:
        """The id of the kit at the services; "" while it is not known."""
        in_doubt = self._is_doubted or self._is_other
        return self._kit.device_id or ("" if in_doubt else self._store.record.known_id)

    @property
    def origin(self) -> IdOrigin | None:
        """Where `device_id` comes from."""
        if self._kit.device_id:
            return IdOrigin.PROFILE
        return self._store.record.known_from if self.device_id else None

    def findings(self) -> Iterator[Finding]:
        """Return what makes one kit two devices, or none, once its modem has answered."""
        device_id, reported = self.device_id, self.device.reported_serial
        if not device_id:
            yield Finding(
                "the modem tells neither its UUID nor its IMEI: what is taken of the kit waits",
                "name the device's id in kit.device_id",
            )
        elif reported not in {"", device_id}:
            yield Finding(
                f"the kit's own events name it {reported}, everything else {device_id}: the "
                "observability service lists two devices",
                f"let its firmware name it {device_id}, or no serial; or set kit.device_id to "
                f"{reported}, if that is its id at the device cloud, too",
            )

    def set_usb(self, usb: UsbPort | None, now: float) -> None:
        """Set its USB identity, None where that is no known kit's; its AT port was opened `now`.

        Unless it is that of before, the record is not trusted until the modem has answered.
        """
        self._usb = usb
        if self._is_told_by_usb:
            self._trust()
        else:
            self.doubt(now)

    def doubt_started(self, now: float) -> None:
        """Doubt that a kit that starts `now` is that of before, unless USB tells that it is.

        The port of an adapter stays open where another one is put behind it.
        """
        if not self._is_told_by_usb:
            self.doubt(now)

    def doubt(self, now: float) -> None:
        """Trust the record no more until the modem answers: a port was opened, in seconds `now`."""
        if self._doubted_since is None:
            self._doubted_since, self._is_doubted = now, True
            self._tell_outbox()
            self.on_doubt()

    def end_old_doubt(self, now: float) -> bool:
        """Trust the record again where the modem has not answered for DOUBT_S; return whether."""
        since = self._doubted_since
        if not self._is_doubted or since is None or now - since < DOUBT_S:
            return False
        self._is_doubted = False
        self._tell_outbox()
        return True

    def _trust(self) -> None:
        self._doubted_since, self._is_doubted = None, False
        self._tell_outbox()

    def update(self, contact: Contact) -> None:
        """Store what the modem answered. Raises AgentError where the disk does not take it."""
        imei = contact.text("imei") or ""
        uuid = "" if self._kit.device_id else contact.device_id
        is_other = self._is_of_other(imei, uuid)
        if is_other:
            with suppress(AgentError):  # it is written with what is known of this one
                self._store.update(**msgspec.structs.asdict(KitRecord()))
            self.device.forget()
        self._application = contact.application
        record = self._store.record
        known_id, known_from = record.known_id, record.known_from
        if (uuid or imei) and not (known_id or self._kit.device_id):
            known_id, known_from = to_slug(uuid or imei), IdOrigin.UUID if uuid else IdOrigin.IMEI
        try:
            self._store.update(
                device_id=uuid or record.device_id,
                imei=imei or record.imei,
                model=contact.text("model") or "",
                known_id=known_id,
                known_from=known_from,
                port=self._kit.port,
                usb_serial=self._usb_serial,
            )
        finally:
            self._trust()
            if is_other:
                self.on_other()

    def _is_of_other(self, imei: str, uuid: str) -> bool:
        """Return whether a modem of these numbers, "" where not told, is not that of the record."""
        record = self._store.record
        if record.imei and imei:
            return record.imei != imei
        if record.device_id and uuid:
            return record.device_id != uuid
        return self._is_other

    def forget_software(self) -> None:
        """Forget all versions: the kit may run other software now."""
        self.device.forget_software()
        self._application = ""

    def _fallback(self) -> device_identity.PartialIdentity:
        """Return what modem and USB say."""
        model = self._usb and self._usb.model
        return device_identity.PartialIdentity(
            self.device_id,
            model.board if model else to_slug(self._store.record.model.partition("-")[0].lower()),
            _APPLICATION if self._application else "",
            to_version(self._application),
        )

    @property
    def _is_told_by_usb(self) -> bool:
        return bool(self._usb_serial) and self._usb_serial == self._store.record.usb_serial

    @property
    def _usb_serial(self) -> str:
        return self._usb.serial if self._usb else ""

    @property
    def _is_other(self) -> bool:
        """Whether another kit than that of the record is plugged in, as far as USB tells."""
        known = self._store.record.usb_serial
        return bool(known and self._usb_serial and known != self._usb_serial)

    def _tell_outbox(self) -> None:
        self._name_device(self._unnamed, self.device_id)

    def _store_names(self, names: device_identity.PartialIdentity) -> None:
        with suppress(AgentError):  # the disk is full: the kit reports them again
            self._store.update(names=names)
        self.on_names()


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
    names: device_identity.PartialIdentity = device_identity.PartialIdentity()
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
        """Have what an earlier version kept of a kit of this name, of any profile."""
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


def names_of(state_dir: Path, profile: str, device_id: str) -> device_identity.PartialIdentity:
    """Return what the own events of a kit have named, as `run` recorded it; nothing of another."""
    for record in _records(kits_folder(state_dir, profile)):
        if record.known_id == device_id:
            return record.names
    return device_identity.PartialIdentity()


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
