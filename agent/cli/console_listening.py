"""The console of a kit at its own port: read to its end, waited for when it goes away."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from agent.cli.frame import note

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.config.profile import Kit
    from agent.console.reader import ConsoleItem, ConsoleReader

_AGAIN_S = 1.0  # between two looks for a port that went away


async def listen(
    kit: Kit,
    reader: ConsoleReader,
    take: Callable[[list[ConsoleItem]], Awaitable[None]],
    lines: tuple[str, ...],
) -> None:
    """Read the console until it ends for good; a port that went away is waited for."""
    from agent.console_port import find_console
    from at.errors import PortError

    port = await find_console(kit, note)
    waiting = False
    first = True
    while True:
        try:
            ended = await _read(port, kit.baud, reader, take, lines if first else ())
        except PortError as error:
            if first:
                raise
            if not waiting:
                note(f"{error}; waiting for it to come back")
            waiting = True
        else:
            if ended:
                return
            note(f"{port} went away; waiting for it to come back")
            waiting = True
        first = False
        await asyncio.sleep(_AGAIN_S)


async def _read(
    port: str,
    baud: int,
    reader: ConsoleReader,
    take: Callable[[list[ConsoleItem]], Awaitable[None]],
    lines: tuple[str, ...],
) -> bool:
    """Read one connection to its end; return whether nothing more can come after it."""
    from agent.console_port import Bytes, console_transport

    receiver = Bytes()
    transport = console_transport(port, baud)
    await transport.open(receiver)
    note(f"{transport.name}: Ctrl-C ends")
    typing = asyncio.create_task(_type(transport.write, lines))
    try:
        while (data := await receiver.next()) is not None:
            await take(reader.receive(data))
    finally:
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)
        await transport.close()
    return receiver.reason is None or port.startswith(("replay:", "virtual:"))


async def _type(write: Callable[[bytes], None], lines: tuple[str, ...]) -> None:
    """Send the given lines, then what a person types."""
    for line in lines:
        write(line.encode() + b"\r")
    if not sys.stdin.isatty():
        return
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    while typed := await stream.readline():
        write(typed.rstrip(b"\r\n") + b"\r")
