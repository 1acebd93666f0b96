"""What `cellagent console` keeps in the outbox of what the kit prints, and whose it is."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.config.profile import Kit
    from agent.console.reader import ConsoleItem
    from agent.observability.device_names import DeviceNames


def names_of(kit: Kit, given: dict[str, str | None]) -> DeviceNames:
    """Return who the kit is: by option, by the profile, by its own events, by its USB identity."""
    from agent.observability.device_names import DeviceNames, Names, names_in_profile
    from at.usb import model_at

    said = Names(**{name: value or "" for name, value in given.items()}) | names_in_profile(kit)
    said.identity()  # a name that breaks its rule is told before anything is opened
    model = model_at(kit.port)
    usb = Names(hardware_version=model.board if model else "")
    return DeviceNames(lambda: said, lambda: usb)


@contextlib.asynccontextmanager
async def forwarding(
    names: DeviceNames, note: Callable[[str], None]
) -> AsyncIterator[Callable[[list[ConsoleItem]], Awaitable[None]]]:
    """Keep chunks and dumps in the outbox, and deliver them meanwhile; `note` hears of trouble."""
    from agent.cli.configured import configured
    from agent.cli.queueing import open_outbox
    from agent.connect import connect
    from agent.errors import UsageError
    from agent.forwarding import Forwarder, utc_now
    from agent.observability.outbox.delivery import Delivery
    from agent.observability.sender import ServiceSender

    if not names.sender:
        raise UsageError(
            "the service needs a name for the device",
            hint="--device-serial, or kit.device_id in the profile",
        )
    configuration = configured()
    with open_outbox(configuration) as outbox:
        async with connect(configuration, unattended=True) as client:
            delivery = Delivery(outbox, ServiceSender(client))
            told = Trouble(note)
            forwarder = Forwarder(outbox, names, wake=delivery.wake, told=told.hear)
            work = [asyncio.create_task(each) for each in (delivery.run(), forwarder.run())]

            async def keep(items: list[ConsoleItem]) -> None:
                await forwarder.take(items, utc_now())

            try:
                yield keep
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)
                await forwarder.keep()
                if lost := forwarder.lost + forwarder.waiting:
                    note(f"{lost} chunks and dumps are lost: they could not be kept")
                await delivery.flush()
                totals = await outbox.ado(lambda store: store.totals())
                note(f"{delivery.done.items} delivered, {totals.waiting} wait in the outbox")


class Trouble:
    """Says once that what is heard waits in memory, and once that it is on disk."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._known = False

    def hear(self, error: Exception | None) -> None:
        """Hear why nothing is kept; None once all is."""
        if error is not None and not self._known:
            self._note(f"not kept yet, it waits in memory: {error}")
        if error is None and self._known:
            self._note("all is kept now")
        self._known = error is not None
