"""A window on a kit's console, over the control socket.

To the window go the lines of `agent.console.line_classifier` as they come, and notices.
"""

import asyncio
import os

import msgspec

from agent.console.port import require_console
from agent.daemon.control import protocol
from agent.daemon.kit.console_windows import ConsoleWatcher
from agent.daemon.kit.kit import KitAgent
from agent.daemon.snapshot import Phase, PortStatus
from agent.daemon.status import Concern, StatusRegistry
from agent.errors import AgentError, UsageError
from agent.tasks import first_of
from at.protocol.errors import AtError


async def show_console(
    kit: KitAgent,
    registry: StatusRegistry,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Show the console of `kit` until the window closes. Raises UsageError where it has none."""
    require_console(kit.settings)
    port = kit.console.port or kit.settings.port
    with kit.console.watchers.subscribed() as watcher:
        await _send(writer, protocol.ConsoleAnswer(True, kit=kit.name, port=port, pid=os.getpid()))
        await first_of(
            _send_lines(watcher, writer),
            _send_troubles(kit, registry, writer),
            _type_lines(kit, reader, writer),
        )


async def _send_lines(watcher: ConsoleWatcher, writer: asyncio.StreamWriter) -> None:
    while True:
        data, lost = await watcher.next()
        if lost:
            await _send(writer, protocol.LostNotice(lost))
        # Before the lines: a window that is closed at the last of them has counted it.
        await _send(writer, protocol.CountsNotice(watcher.counts()))
        writer.write(data)
        await writer.drain()


async def _send_troubles(
    kit: KitAgent, registry: StatusRegistry, writer: asyncio.StreamWriter
) -> None:
    sent = protocol.TroubleNotice("")
    while True:
        change = registry.next_change  # of before the status is read: no later one is missed
        trouble = _trouble(kit)
        if trouble != sent:
            sent = trouble
            await _send(writer, trouble)
        await change.wait()


def _trouble(kit: KitAgent) -> protocol.TroubleNotice:
    """Return why nothing of the console is received, and what to try; "" while it is received."""
    link, console = kit.link.concern, kit.console.concern
    own_port = bool(kit.console.port)
    port: Concern[PortStatus] = console if own_port else link
    if holder := port.status.let_go_for:
        return protocol.TroubleNotice(f"the agent let go of it for {holder}")
    concern: Concern[PortStatus] = console if console.phase is Phase.TROUBLE else port
    # A released port waits, too, until it is open again: but nothing failed.
    if concern.port_is_lost or (
        own_port and console.phase is Phase.WAITING and console.status.failures
    ):
        return protocol.TroubleNotice("it went away; waiting for it to come back")
    if concern.phase in {Phase.TROUBLE, Phase.OFF}:
        return protocol.TroubleNotice(concern.status.trouble or "", concern.status.hint or "")
    return protocol.TroubleNotice("")


async def _type_lines(
    kit: KitAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    while True:
        try:
            line = await reader.readline()
            if not line:
                return
            typed = protocol.convert(protocol.parse(line), protocol.TypedLine)
            if answer := await kit.type_line(typed.line):
                await _send(writer, protocol.TypedAnswer(answer))
        except ValueError:
            raise UsageError('a window says {"type": LINE}') from None
        except (AgentError, AtError) as error:
            await _send(writer, protocol.RefusedLine(str(error), getattr(error, "hint", "")))


async def _send(writer: asyncio.StreamWriter, message: msgspec.Struct) -> None:
    writer.write(protocol.encode(message))
    await writer.drain()  # a window that does not read blocks itself alone
