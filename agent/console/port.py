"""Finds the console port of a kit: the one that is configured, the AT port, or by listening."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from agent.config.profile import KitSettings
from agent.errors import UsageError
from at.ports.usb import Listing, device_of, ports_of_kit, system_ports
from at.protocol.errors import LinkLost, PortError
from at.transport.base import Transport

LISTEN_S = 3.0
"""Seconds to wait for a first line on the ports of a kit."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A port, and what it printed while it was listened to, which is its reader's."""

    port: str
    data: bytes = b""
    is_text: bool = False


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
) -> Heard:
    """Return the port of the kit's console; calls `note` with each step of the search.

    Raises UsageError, PortNotFound.
    """
    require_console(kit)
    if kit.console_port not in {"auto", "same"}:
        return Heard(kit.console_port)
    candidates = [kit.port]
    if kit.console_port == "auto":
        candidates = await asyncio.to_thread(ports_of, kit, listing)
    if len(candidates) == 1:
        return Heard(candidates[0])
    note(f"listening to {', '.join(candidates)} for {LISTEN_S:g} s")
    heard = await _listen(candidates, kit.baud, note)
    if found := next((each for each in heard if each.is_text), None):
        return found
    # The kits print on their first port unless they are configured otherwise.
    note(
        "none of them prints anything: the first is taken; "
        "`cellagent config set kit.console_port PORT` names another"
    )
    return heard[0]


async def own_port(kit: KitSettings) -> Heard:
    """Return the port that only the console uses, named "" if the kit prints on its AT port.

    Which port prints is found by listening, so it is a guess; kit.console_port overrides it.
    """
    if kit.console_port in {"same", "none"}:
        return Heard("")
    if kit.console_port != "auto":
        return Heard(kit.console_port)
    at_port = {kit.port, await asyncio.to_thread(device_of, kit.port)}
    others = [port for port in await asyncio.to_thread(ports_of, kit) if port not in at_port]
    heard = await _listen(others, kit.baud, lambda _: None)
    return next((each for each in heard if each.is_text), Heard(""))


async def _listen(ports: list[str], baud: int, note: Callable[[str], None]) -> list[Heard]:
    """Listen to ports until all have printed text, for LISTEN_S at most.

    Each is read until the last one is decided: what a kit prints meanwhile it prints once.
    """
    async with AsyncExitStack() as stack:
        ears = [_Ear(port, baud) for port in ports]
        for ear in ears:
            stack.push_async_callback(ear.close)
        are_text = await asyncio.gather(*(ear.hears_text(note) for ear in ears))
    return [
        Heard(ear.port, ear.heard, is_text) for ear, is_text in zip(ears, are_text, strict=True)
    ]


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


class _Ear:
    """Listens to one port, until it is closed."""

    def __init__(self, port: str, baud: int) -> None:
        self.port = port
        self.heard = b""
        self._baud = baud
        self._receiver = ByteQueue()
        self._transport: Transport | None = None

    async def hears_text(self, note: Callable[[str], None]) -> bool:
        """Return whether the port prints a line of text within LISTEN_S."""
        from agent.console.line_classifier import ConsoleReader
        from agent.console.log_line import LogLine
        from at.driver.opening import is_garbage

        reader = ConsoleReader()
        try:
            transport = console_transport(self.port, self._baud)
            await transport.open(self._receiver)
        except PortError as error:
            note(f"{self.port}: {error}")
            return False
        self._transport = transport
        with suppress(TimeoutError, LinkLost):
            async with asyncio.timeout(LISTEN_S):
                while (data := await self._receiver.next()) is not None:
                    self.heard += data
                    if is_garbage(data):
                        continue
                    if any(
                        not isinstance(item, LogLine) or item.level for item in reader.receive(data)
                    ):
                        return True
        return False

    async def close(self) -> None:
        """Close the port; all that it printed is in `heard`."""
        if self._transport is not None:
            await self._transport.close()
        self.heard += self._receiver.take()
