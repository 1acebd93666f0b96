"""Who a kit is to the observability service, as far as the agent has found out; kept on disk."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from agent.daemon.memory import Remembered
from agent.errors import AgentError
from agent.observability.device_names import DeviceNames, Names, names_in_profile
from agent.observability.slugs import as_slug, as_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config.profile import Kit
    from agent.daemon.first_contact import Contact
    from agent.daemon.memory import KitMemory
    from at.usb import Model

_APPLICATION = "app"  # what the SDK of these kits calls the application, unless it is told


class KitNames:
    """The names of the kit that the agent calls `name`; `kit` is its part of the profile."""

    def __init__(self, name: str, kit: Callable[[], Kit], memory: KitMemory) -> None:
        self._name = name
        self._memory = memory
        self._board = ""
        self._application = ""
        self.device = DeviceNames(
            lambda: names_in_profile(kit()),
            self._otherwise,
            reported=memory.known.names,
            learned=self._learned,
        )

    def plugged_in(self, model: Model | None) -> None:
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

    def _otherwise(self) -> Names:
        """Return what the modem and the USB tell; a kit that never told has its name here."""
        known = self._memory.known
        return Names(
            as_slug(known.device_id or known.imei or self._name),
            self._board or as_slug(known.model.partition("-")[0].lower()),
            _APPLICATION if self._application else "",
            as_version(self._application),
        )

    def _learned(self, names: Names) -> None:
        with suppress(AgentError):  # the disk is full: the kit tells it again
            self._memory.learn(names=names)
