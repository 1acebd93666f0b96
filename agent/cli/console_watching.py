"""The console of a kit that the running agent holds: shown as the agent hears it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent.console.reader import ConsoleCounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.cli.console_typing import Typing
    from agent.cli.console_window import ConsoleWindow
    from agent.console.reader import ConsoleItem
    from agent.daemon.control_client import Connection
    from agent.daemon.held_kits import HeldKit

_AGAIN_S = 1.0  # between two looks for an agent that ended
_LONGEST_LINE = 32 * 1024 * 1024  # bytes: a core dump of 16 MiB as base64


class Watching:
    """One window on the console of one kit, from agent to agent."""

    def __init__(
        self,
        kit: HeldKit,
        window: ConsoleWindow,
        take: Callable[[list[ConsoleItem]], Awaitable[None]],
        typing: Typing,
    ) -> None:
        """`take` keeps and shows what was heard."""
        self._kit = kit
        self._window = window
        self._take = take
        self._typing = typing
        self._port = ""
        self._troubled = False
        self._lost = 0
        self._before = asdict(ConsoleCounts())  # what earlier agents counted
        self._now: dict[str, int] = {}

    @property
    def counts(self) -> dict[str, int]:
        """What was heard so far, by name, and how much of it was not shown."""
        heard = {name: value + self._now.get(name, 0) for name, value in self._before.items()}
        return {**heard, "not_shown": self._lost}

    async def run(self) -> None:
        """Show what is heard until cancelled; an agent that ended is waited for.

        Raises AgentSaid where the agent refuses.
        """
        from agent.daemon.control_client import NotRunning, asking

        while True:
            kit = self._kit
            asked = asking(kit.place, longest_answer=_LONGEST_LINE, do="console", kit=kit.name)
            try:
                async with asked as connection:
                    await self._connected(connection)
            except NotRunning as error:
                self._window.note(f"{error}; waiting for it to run again")
            heard = self.counts
            self._before, self._now = {name: heard[name] for name in self._before}, {}
            self._kit = await _found_again(kit.port)

    async def finish(self) -> None:
        """Do nothing more: the agent goes on."""

    async def _connected(self, connection: Connection) -> None:
        first = await connection.answer()
        self._port = first["port"]
        self._troubled = False
        self._window.note(
            f"{self._port}, through the running agent (PID {first['pid']}): Ctrl-C ends"
        )

        def send(line: str) -> None:
            connection.writer.write(json.dumps({"type": line}).encode() + b"\n")

        async with self._typing.into(send):
            while True:
                await self._heard(await connection.answer(None))

    async def _heard(self, told: dict[str, Any]) -> None:
        from agent.console.wire import decode

        if "is" in told:
            await self._take([decode(told)])
        elif "coming" in told:
            self._window.show_coming(told["coming"])
        elif "counts" in told:
            self._now = told["counts"]
        elif "lost" in told:
            self._lost += told["lost"]
            self._window.show_lost(told["lost"])
        elif "answer" in told:
            self._window.show_answer(told["answer"])
        elif "refused" in told:
            self._window.note(_sentence(f"not typed: {told['refused']}", told["try"]))
        elif told["trouble"]:
            self._troubled = True
            self._window.note(_sentence(f"{self._port}: {told['trouble']}", told["try"]))
        elif self._troubled:
            self._troubled = False
            self._window.note(f"{self._port} is back")


async def _found_again(port: str) -> HeldKit:
    from agent.cli.kit import held_kit

    while True:
        if found := await held_kit(port, to_watch=True):
            return found
        await asyncio.sleep(_AGAIN_S)


def _sentence(text: str, way_out: str) -> str:
    return f"{text}; try: {way_out}" if way_out else text
