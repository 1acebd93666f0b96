"""Finds the console port of a kit: the one that is configured, the AT port, or by listening."""

import asyncio
from collections.abc import Callable

from agent.config.profile import KitSettings
from agent.errors import UsageError
from at.ports.usb import Listing, ports_of_kit, resolve, system_ports
from at.protocol.errors import LinkLost, PortError
from at.transport.base import Transport

LISTEN_S = 3.0
"""Seconds to wait for a first line on the ports of a kit."""


class ByteQueue:
    """A queue between a transport and one reader of its bytes; None is the end."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.reason: Exception | None = None

    def data_received(self, data: bytes) -> None:
        """Queue bytes."""
        self.queue.put_nowait(data)

    def connection_lost(self, reason: Exception | None) -> None:
        """Queue the end and keep its reason."""
        self.reason = reason
        self.queue.put_nowait(None)

    async def next(self) -> bytes | None:
        """Return all bytes at hand, waiting for at least one; None at the end."""
        data = await self.queue.get()
        while data is not None and not self.queue.empty():
            more = self.queue.get_nowait()
            if more is None:
                self.queue.put_nowait(None)
                break
            data += more
        return data

    def take(self) -> bytes:
        """Return all bytes at hand, once no more come."""
        data = b""
        while not self.queue.empty():
            data += self.queue.get_nowait() or b""
        return data


def console_transport(port: str, baud: int, listing: Listing = system_ports) -> Transport:
    """Return the transport of a console. Raises PortNotFound."""
    from at.driver.opening import transport_of

    # A console is only read: there is no flow control.
    return transport_of(port, baud=baud, rtscts=False, listing=listing)


async def find_console(
    kit: KitSettings, note: Callable[[str], None], listing: Listing = system_ports
) -> str:
    """Return the port of the kit's console; calls `note` with each step of the search.

    Raises UsageError, PortNotFound.
    """
    require_console(kit)
    if kit.console_port not in {"auto", "same"}:
        return kit.console_port
    candidates = [kit.port]
    if kit.console_port == "auto":
        candidates = await asyncio.to_thread(ports_of, kit, listing)
    if len(candidates) == 1:
        return candidates[0]
    note(f"listening to {', '.join(candidates)} for {LISTEN_S:g} s")
    if port := await _first_that_prints(candidates, kit.baud, note):
        return port
    # The kits print on their first port unless they are configured otherwise.
    note(
        "none of them prints anything: the first is taken; "
        "`cellagent config set kit.console_port PORT` names another"
    )
    return candidates[0]


async def own_port(kit: KitSettings) -> str:
    """Return the port that only the console uses; "" if the kit prints on its AT port.

    Which port prints is found by listening, so it is a guess; kit.console_port overrides it.
    """
    if kit.console_port in {"same", "none"}:
        return ""
    if kit.console_port != "auto":
        return kit.console_port
    others = [port for port in await asyncio.to_thread(ports_of, kit) if port != kit.port]
    if others and kit.port.startswith("serial:"):
        device, _ = await asyncio.to_thread(resolve, kit.port)
        others = [port for port in others if port != device]
    return await _first_that_prints(others, kit.baud, lambda _: None)


async def _first_that_prints(ports: list[str], baud: int, note: Callable[[str], None]) -> str:
    prints = await asyncio.gather(*(prints_text(port, baud, note) for port in ports))
    return next((port for port, printed in zip(ports, prints, strict=True) if printed), "")


def require_console(kit: KitSettings) -> None:
    """Raise UsageError where the profile says that the kit has no console."""
    if kit.console_port == "none":
        raise UsageError(
            "the profile says that the kit has no console",
            hint="`cellagent config set kit.console_port auto`",
        )


def ports_of(kit: KitSettings, listing: Listing = system_ports) -> list[str]:
    """Return the ports of the kit, the named one alone if it is on no known kit."""
    return [port.device for port in ports_of_kit(kit.port, listing)] or [kit.port]


async def prints_text(port: str, baud: int, note: Callable[[str], None]) -> bool:
    """Return whether a port prints a line of text within LISTEN_S."""
    from agent.console.line_classifier import ConsoleReader
    from agent.console.log_line import LogLine
    from at.driver.opening import is_garbage

    receiver, reader = ByteQueue(), ConsoleReader()
    try:
        transport = console_transport(port, baud)
        await transport.open(receiver)
    except PortError as error:
        note(f"{port}: {error}")
        return False
    try:
        async with asyncio.timeout(LISTEN_S):
            while (data := await receiver.next()) is not None:
                if is_garbage(data):
                    continue
                if any(
                    not isinstance(item, LogLine) or item.level for item in reader.receive(data)
                ):
                    return True
    except (TimeoutError, LinkLost):
        return False
    finally:
        await transport.close()
    return False
