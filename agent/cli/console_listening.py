"""The console of a kit at its own port: read to its end, waited for when it goes away."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent.console.reader import ConsoleReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.cli.console_typing import Typing
    from agent.cli.console_window import ConsoleWindow
    from agent.config.profile import Kit
    from agent.console.reader import ConsoleItem

_AGAIN_S = 1.0  # between two looks for a port that went away


class Listening:
    """The port of one console, from plug to plug."""

    def __init__(
        self,
        kit: Kit,
        window: ConsoleWindow,
        take: Callable[[list[ConsoleItem]], Awaitable[None]],
        typing: Typing,
    ) -> None:
        """`take` keeps and shows what was heard."""
        self._kit = kit
        self._window = window
        self._take = take
        self._typing = typing
        self._reader = ConsoleReader()

    @property
    def counts(self) -> dict[str, int]:
        """What was heard so far, by name."""
        return asdict(self._reader.counts)

    async def run(self) -> None:
        """Read the console until it ends for good; a port that went away is waited for."""
        from agent.console_port import find_console
        from at.errors import PortError

        port = await find_console(self._kit, self._window.note)
        waiting = False
        first = True
        while True:
            try:
                ended = await self._read(port)
            except PortError as error:
                if first:
                    raise
                if not waiting:
                    self._window.note(f"{error}; waiting for it to come back")
                waiting = True
            else:
                if ended:
                    return
                self._window.note(f"{port} went away; waiting for it to come back")
                waiting = True
            first = False
            await asyncio.sleep(_AGAIN_S)

    async def finish(self) -> None:
        """End the last line and what is in progress."""
        await self._take(self._reader.finish())

    async def _read(self, port: str) -> bool:
        """Read one connection to its end; return whether nothing more can come after it."""
        from agent.console_port import Bytes, console_transport

        receiver = Bytes()
        transport = console_transport(port, self._kit.baud)
        await transport.open(receiver)
        self._window.note(f"{transport.name}: Ctrl-C ends")
        try:
            async with self._typing.into(lambda line: transport.write(line.encode() + b"\r")):
                while (data := await receiver.next()) is not None:
                    await self._take(self._reader.receive(data))
                    self._window.show_coming(self._reader.dump_bytes)
        finally:
            await transport.close()
        # What comes after a break is not the rest of this line, nor of this dump.
        await self.finish()
        return receiver.reason is None or port.startswith(("replay:", "virtual:"))
