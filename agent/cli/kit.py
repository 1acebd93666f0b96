"""From the common options to an open modem: the port that was named, or the only kit there is."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent.cli.frame import options
from agent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.config.profile import Kit
    from at.modem import Modem


def chosen_kit() -> Kit:
    """Return the kit of the profile, with its port filled in. Raises UsageError, PortNotFound."""
    import msgspec

    from agent.config.load import load

    given = options()
    kit = load(given.profile, port=given.port).profile.kit
    return kit if kit.port else msgspec.structs.replace(kit, port=only_kit_port())


def only_kit_port() -> str:
    """Return the AT port of the only kit that is plugged in. Raises UsageError, PortNotFound."""
    from at.errors import PortNotFound
    from at.usb import system_ports

    serials = sorted({port.serial for port in system_ports() if port.model})
    if not serials:
        raise PortNotFound(
            "no kit is plugged in, and no port is named",
            hint="--port PORT, or --port virtual: for a virtual modem",
        )
    if len(serials) > 1:
        raise UsageError(
            f"{len(serials)} kits are plugged in",
            hint="name one: " + ", ".join(f"--port serial:{serial}" for serial in serials),
        )
    return f"serial:{serials[0]}"


@contextlib.asynccontextmanager
async def kit_modem(
    *, baud: int | None = None, dialect: str | None = None, terminator: str = "auto"
) -> AsyncIterator[Modem]:
    """Open the modem of the chosen kit. Arguments go before the profile's. Raises AtError.

    A kit that the running agent holds is borrowed from it, in turns.
    """
    from at.modem import open_modem

    kit = chosen_kit()
    if borrowed := await _borrowed(kit.port, dialect or kit.dialect, terminator):
        await borrowed.open()
        try:
            yield borrowed
        finally:
            await borrowed.close()
        return
    async with open_modem(
        kit.port, baud=baud or kit.baud, dialect=dialect or kit.dialect, terminator=terminator
    ) as modem:
        yield modem


async def _borrowed(port: str, dialect: str, terminator: str) -> Modem | None:
    """Return the modem on `port` if a running agent has it, not yet opened."""
    from agent.config.load import state_dir
    from agent.daemon.control_place import places

    folder = state_dir()
    if not any(places(folder)):
        return None
    from agent.daemon.control_client import BorrowedTransport, find_kit, link_of
    from at.modem import Modem

    found = await find_kit(folder, port)
    if found is None:
        return None
    place, kit = found
    link = link_of(kit)
    return Modem(
        BorrowedTransport(place, kit),
        dialect=link.get("dialect", dialect) if dialect == "auto" else dialect,
        terminator=link.get("terminator", terminator) if terminator == "auto" else terminator,
    )
