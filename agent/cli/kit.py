"""From the common options to an open modem: the port that was named, or the only kit there is."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.config.profile import Kit
    from agent.daemon.held_kits import HeldKit
    from at.modem import Modem
    from at.transport.base import Transport


def chosen_kit() -> Kit:
    """Return the kit that is meant, with its port. Raises ConfigError, UsageError, PortNotFound."""
    import msgspec

    from agent.cli.configured import configured

    profile = configured().profile
    if profile.kit.port:
        return profile.kit
    if profile.kits:
        raise UsageError(
            f"the profile has {len(profile.kits)} kits",
            hint="name one: " + ", ".join(f"--port {kit.port}" for kit in profile.kits.values()),
        )
    return msgspec.structs.replace(profile.kit, port=only_kit_port())


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
    """Open the modem of the chosen kit. Arguments go before the profile's. Raises AtError."""
    kit = chosen_kit()
    async with modem_on(
        kit.port, baud=baud or kit.baud, dialect=dialect or kit.dialect, terminator=terminator
    ) as modem:
        yield modem


@contextlib.asynccontextmanager
async def modem_on(
    port: str, *, baud: int = 115200, dialect: str = "auto", terminator: str = "auto"
) -> AsyncIterator[Modem]:
    """Open the modem behind `port`; borrow it, when our turn comes, from an agent that holds it.

    Arguments are those of `at.modem.open_modem`. Raises AtError.
    """
    from at.modem import Modem

    transport, link = await transport_on(port, baud)
    modem = Modem(
        transport,
        dialect=link.get("dialect", dialect) if dialect == "auto" else dialect,
        terminator=link.get("terminator", terminator) if terminator == "auto" else terminator,
    )
    await modem.open()
    try:
        yield modem
    finally:
        await modem.close()


async def transport_on(port: str, baud: int) -> tuple[Transport, dict[str, Any]]:
    """Return the transport to a port, and what the agent knows that it is borrowed from."""
    held = await held_kit(port)
    if held is None:
        from at.opening import transport_of

        return transport_of(port, baud=baud), {}
    from agent.daemon.borrowed import BorrowedTransport

    return BorrowedTransport(held), held.link


async def held_kit(port: str, *, to_watch: bool = False) -> HeldKit | None:
    """Return the kit on `port` if a running agent holds it (`agent.daemon.held_kits.find_kit`)."""
    from agent.config.places import state_dir
    from agent.daemon.control_place import places

    folder = state_dir()
    if not any(places(folder)):
        return None  # before more is imported
    from agent.daemon.held_kits import find_kit

    return await find_kit(folder, port, to_watch=to_watch)
