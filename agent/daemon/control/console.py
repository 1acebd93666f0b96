"""A window on a kit's console, over the control socket.

To the window: {"ok", "kit", "port", "pid"} first, then lines as they come: those of
`agent.console.line_classifier`; {"coming": bytes} when a core dump begins, 0 when it is over;
{"lost": n} where n lines were not read in time; {"counts": {…}}, how much was received;
{"trouble": text, "try": text} when the console goes away, "" when it is back.
From the window: {"type": LINE}, to be written to the kit; the modem's answer to it comes back as
{"answer": LINES}, the reason why it was not written as {"refused": text, "try": text}.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

from agent.daemon.status import State, StatusRegistry
from agent.errors import AgentError, UsageError
from agent.tasks import first_of
from at.protocol.errors import AtError

if TYPE_CHECKING:
    from agent.daemon.kit.console import ConsoleWatcher
    from agent.daemon.kit.kit import KitAgent


async def show_console(
    kit: KitAgent,
    registry: StatusRegistry,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Show the console of `kit` until the window closes. Raises UsageError where it has none."""
    if kit.settings.console_port == "none":
        raise UsageError(
            "the profile says that the kit has no console", hint="kit.console_port = auto"
        )
    port = kit.console.port or kit.settings.port
    with kit.console.watchers.subscribed() as watcher:
        _send(writer, ok=True, kit=kit.name, port=port, pid=os.getpid())
        await first_of(
            _send_lines(watcher, writer),
            _send_troubles(kit, registry, writer),
            _type_lines(kit, reader, writer),
        )


async def _send_lines(watcher: ConsoleWatcher, writer: asyncio.StreamWriter) -> None:
    while True:
        data, lost = await watcher.next()
        if lost:
            _send(writer, lost=lost)
        # Before the lines: a window that is closed at the last of them has counted it.
        _send(writer, counts=watcher.counts())
        writer.write(data)
        await writer.drain()  # a window that does not read blocks itself alone


async def _send_troubles(
    kit: KitAgent, registry: StatusRegistry, writer: asyncio.StreamWriter
) -> None:
    sent = ("", "")
    while True:
        change = registry.next_change  # of before the status is read: no later one is missed
        trouble = _trouble(kit)
        if trouble != sent:
            sent = trouble
            _send(writer, trouble=trouble[0], **{"try": trouble[1]})
            await writer.drain()
        await change.wait()


def _trouble(kit: KitAgent) -> tuple[str, str]:
    """Return why nothing of the console is received, and what to try; "" while it is received."""
    link, console = kit.link.concern, kit.console.concern
    own_port = bool(kit.console.port)
    if holder := (console if own_port else link).facts.get("let_go_for"):
        return f"the agent let go of it for {holder}", ""
    concern = console if own_port or console.state is State.TROUBLE else link
    # A released port waits, too, until it is open again: but nothing failed.
    if concern.port_is_lost or (own_port and console.state is State.WAITING and console.failures):
        return "it went away; waiting for it to come back", ""
    if concern.state in {State.TROUBLE, State.OFF}:
        return concern.trouble, concern.hint
    return "", ""


async def _type_lines(
    kit: KitAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    while True:
        try:
            line = await reader.readline()
            if not line:
                return
            answer = await kit.type_line(str(json.loads(line)["type"]))
            if answer:
                _send(writer, answer=answer)
        except (ValueError, LookupError, TypeError, RecursionError):
            raise UsageError('a window says {"type": LINE}') from None
        except (AgentError, AtError) as error:
            _send(writer, refused=str(error), **{"try": getattr(error, "hint", "")})


def _send(writer: asyncio.StreamWriter, **answer: Any) -> None:
    writer.write(json.dumps(answer).encode() + b"\n")
