"""The identity of a kit as far as it is known.

A kit has one id at the services. `kit.device_id` pins it; else a kit keeps the one that its record
has, and a new kit gets its modem's UUID, or its IMEI where the modem tells no UUID. Until then all
that is taken of the kit waits in the outbox for the id. So it does from when a port is opened until
the modem has answered, unless USB tells that it is the same kit: another one may be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from agent.config.profile import KitSettings
from agent.daemon.kit.store import IdOrigin, KitRecord, KitStore
from agent.daemon.snapshot import Finding
from agent.errors import AgentError
from agent.observability.api.resource_names import to_slug, to_version
from agent.observability.ingest import device_identity
from agent.outbox.items import unnamed
from at.ports.usb import UsbPort

if TYPE_CHECKING:
    from agent.daemon.kit.first_contact import Contact

DOUBT_S = 300.0
"""A kit whose modem does not answer for so long is taken for the one that was there before."""
_APPLICATION = "app"  # what the SDK of these kits calls the application by default


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
        self.namesakes: Callable[[str], Sequence[str]] = lambda _device_id: ()
        """Tells which other kits are a device."""
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
        """Return what makes one kit two devices or none, or two one, once its modem answered."""
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
        if device_id and (others := self.namesakes(device_id)):
            yield Finding(
                f"{' and '.join(others)} is the device {device_id}, too: what one of them sends is "
                "taken for the other's, and an update that one is offered is carried out by both",
                "correct kit.device_id where it is set; one board on two ports, or a clone, is to "
                "be unplugged",
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
