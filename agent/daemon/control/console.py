"""A window on a kit's console, over the local socket.

To the window: {"ok", "kit", "port", "pid"} first, then lines as they come: those of
`agent.console.reader`; {"coming": bytes} when a core dump begins, 0 when it is over; {"lost": n}
where n lines were not read in time; {"counts": {…}}, how much was heard; {"trouble": text,
"try": text} when the console goes away, "" when it is back.
From the window: {"type": LINE}, to be written to the kit; {"answer": LINES} is what a modem says
to it, {"refused": text, "try": text} why it was not written.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

from agent.daemon.status import State
from agent.errors import AgentError, UsageError
from agent.tasks import first_of
from at.protocol.errors import AtError

if TYPE_CHECKING:
    from agent.daemon.kit.console import Watcher
    from agent.daemon.kit.kit import KitAgent
    from agent.daemon.status import Board


async def show_console(
    kit: KitAgent, board: Board, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Show the console of `kit` until the window closes. Raises UsageError where it has none."""
    if kit.kit.console_port == "none":
        raise UsageError(
            "the profile says that the kit has no console", hint="kit.console_port = auto"
        )
    with kit.console.watchers.watching() as watcher:
        _say(writer, ok=True, kit=kit.name, port=kit.console.port or kit.kit.port, pid=os.getpid())
        await first_of(
            _lines(watcher, writer), _troubles(kit, board, writer), _typed(kit, reader, writer)
        )


async def _lines(watcher: Watcher, writer: asyncio.StreamWriter) -> None:
    while True:
        data, lost = await watcher.next()
        if lost:
            _say(writer, lost=lost)
        # Before the lines: a window that is closed at the last of them has counted it.
        _say(writer, counts=watcher.counted())
        writer.write(data)
        await writer.drain()  # a window that does not read waits here, and nobody else


async def _troubles(kit: KitAgent, board: Board, writer: asyncio.StreamWriter) -> None:
    told = ("", "")
    while True:
        # Watched from before the look, so that no change falls between the two.
        changed = asyncio.ensure_future(board.changed())
        try:
            trouble = _trouble(kit)
            if trouble != told:
                told = trouble
                _say(writer, trouble=trouble[0], **{"try": trouble[1]})
                await writer.drain()
            await changed
        finally:
            changed.cancel()


def _trouble(kit: KitAgent) -> tuple[str, str]:
    """Return what keeps the console from being heard, and the way out; "" while it is."""
    link, console = kit.link.concern, kit.console.concern
    own_port = bool(kit.console.port)
    if holder := (console if own_port else link).facts.get("let_go_for"):
        return f"the agent let go of it for {holder}", ""
    concern = console if own_port or console.state is State.TROUBLE else link
    # One that was let go waits, too, until it is open again: but nothing failed.
    if concern.is_gone or (own_port and console.state is State.WAITING and console.failures):
        return "it went away; waiting for it to come back", ""
    if concern.state in {State.TROUBLE, State.OFF}:
        return concern.trouble, concern.hint
    return "", ""


async def _typed(kit: KitAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        try:
            line = await reader.readline()
            if not line:
                return
            answer = await kit.lending.type_line(str(json.loads(line)["type"]))
            if answer:
                _say(writer, answer=answer)
        except (ValueError, LookupError, TypeError, RecursionError):
            raise UsageError('a window says {"type": LINE}') from None
        except (AgentError, AtError) as error:
            _say(writer, refused=str(error), **{"try": getattr(error, "hint", "")})


def _say(writer: asyncio.StreamWriter, **answer: Any) -> None:
    writer.write(json.dumps(answer).encode() + b"\n")
