"""`cellagent console`: the kit's logs, live; chunks and core dumps lifted out and counted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.frame import AgentCommand, emit, note, options, run
from agent.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.config import Configuration
    from agent.config.profile import Kit
    from agent.console.reader import ConsoleItem, ConsoleReader

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[33m", "debug": "\x1b[2m"}
_RESET = "\x1b[0m"
_RANK = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_AGAIN_S = 1.0  # between two looks for a port that went away


@click.command(
    cls=AgentCommand,
    epilog="Example: cellagent console --port /dev/ttyACM0 --level warning --forward",
)
@click.option("--level", type=click.Choice(list(_RANK)), help="Hide log lines below this level.")
@click.option("--match", default="", metavar="TEXT", help="Show only lines that hold TEXT.")
@click.option("--forward", is_flag=True, help="Deliver chunks and core dumps to the service.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write chunks and core dumps to files.",
)
@click.option("--send", "lines", multiple=True, metavar="LINE", help="Write a line to the kit.")
@click.option("--device-serial", help="The device at the service; default: kit.device_id.")
@click.option("--hardware-version", default="unknown", help="The board, as `nrf9161dk`.")
@click.option("--software-type", default="unknown", help="The component, as `main`.")
@click.option("--software-version", default="unknown", help="Its version.")
@click.option("--baud", type=click.IntRange(min=1), help="Speed of the line.")
@click.option("--seconds", type=click.FloatRange(min=0), help="Stop after this time.")
def command(
    level: str | None,
    match: str,
    forward: bool,
    save: Path | None,
    lines: tuple[str, ...],
    baud: int | None,
    seconds: float | None,
    **identity: str | None,
) -> None:
    """Show what the kit prints, in colour; chunks and core dumps are lifted out and counted.

    Lines that you type go to the kit. The window outlives the unplugging of the kit; it ends
    with Ctrl-C.
    """
    window = _Window(level, match)
    run(_console(window, lines, forward, save, baud, seconds, identity))


class _Window:
    """What a person, or a program, is shown."""

    def __init__(self, level: str | None, match: str) -> None:
        self._floor = _RANK[level] if level else -1
        self._match = match
        self._json = options().json
        self._chunks = 0
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def show(self, item: ConsoleItem) -> None:
        """Show one thing that was heard."""
        from agent.console.log_line import LogLine

        if isinstance(item, LogLine):
            if item.level is not None and _RANK[item.level] < self._floor:
                return
            if self._match and self._match not in item.line:
                return
        if self._json:
            emit(_describe(item))
            return
        if isinstance(item, LogLine):
            colour = _COLOURS.get(item.level or "", "") if self._colours else ""
            text = printable(item.line)
            sys.stdout.write(f"{colour}{text}{_RESET if colour else ''}\n")
        else:
            for line in self._told(item):
                sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()

    def _told(self, item: ConsoleItem) -> list[str]:
        """Return what was lifted out as lines for a person."""
        from agent.console.chunk_lines import ChunkLine, DamagedChunk
        from agent.console.dump_lines import CapturedDump, DamagedDumpLine
        from agent.console.reader import Overlong

        if isinstance(item, ChunkLine):
            self._chunks += 1
            return [f"** chunk {self._chunks}: {len(item.chunk)} bytes"]
        if isinstance(item, CapturedDump):
            from agent.cli.coredumps import describe_dump, tell_dump

            return [f"** {line}" for line in tell_dump(describe_dump(item)).splitlines()]
        if isinstance(item, DamagedChunk):
            return [f"!! a chunk is damaged, and lost: {item.reason}"]
        if isinstance(item, DamagedDumpLine):
            return [f"!! a line of a core dump is damaged: {item.reason}"]
        if isinstance(item, Overlong):
            return [f"!! a line of {item.size} bytes is not read"]
        return []  # a fault or a restart: its line was shown


def _describe(item: ConsoleItem) -> dict[str, Any]:
    from agent.console.chunk_lines import ChunkLine, DamagedChunk
    from agent.console.dump_lines import CapturedDump, DamagedDumpLine
    from agent.console.faults import FaultText, Reboot
    from agent.console.log_line import LogLine

    if isinstance(item, LogLine):
        return {"type": "log", **asdict(item)}
    if isinstance(item, ChunkLine):
        return {"type": "chunk", "chunk": item.chunk.hex()}
    if isinstance(item, DamagedChunk):
        text = item.text.decode("utf-8", "backslashreplace")
        return {"type": "damaged_chunk", "text": text, "reason": item.reason}
    if isinstance(item, CapturedDump):
        from agent.cli.coredumps import describe_dump

        return {"type": "coredump", **describe_dump(item)}
    if isinstance(item, DamagedDumpLine):
        text = item.text.decode("utf-8", "backslashreplace")
        return {"type": "damaged_dump_line", "text": text, "reason": item.reason}
    if isinstance(item, FaultText):
        return {"type": "fault", **asdict(item)}
    if isinstance(item, Reboot):
        return {"type": "reboot", **asdict(item)}
    text = item.text.decode("utf-8", "backslashreplace")
    return {"type": "overlong", "text": text, "bytes": item.size}


async def _console(
    window: _Window,
    lines: tuple[str, ...],
    forward: bool,
    save: Path | None,
    baud: int | None,
    seconds: float | None,
    identity: dict[str, str | None],
) -> int:
    from agent.cli.kit import chosen_kit
    from agent.config import load
    from agent.console.reader import ConsoleReader

    import msgspec  # isort: skip

    given = options()
    configuration = load(given.profile, port=given.port)
    kit = chosen_kit()
    if baud:
        kit = msgspec.structs.replace(kit, baud=baud)
    reader = ConsoleReader()
    keepers: list[Callable[[list[ConsoleItem]], Awaitable[None]]] = []
    async with contextlib.AsyncExitStack() as stack:
        if forward:
            keepers.append(await stack.enter_async_context(_forwarding(configuration, identity)))
        if save is not None:
            keepers.append(_saving(save))

        async def take(items: list[ConsoleItem]) -> None:
            for keep in keepers:  # before anything is shown: the kit says it once
                await keep(items)
            for item in items:
                window.show(item)

        try:
            async with asyncio.timeout(seconds):
                await _listen(kit, reader, take, lines)
        except TimeoutError:
            pass
        finally:
            await take(reader.finish())
            _sum_up(reader)
    return 0


async def _listen(
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


@contextlib.asynccontextmanager
async def _forwarding(
    configuration: Configuration, identity: dict[str, str | None]
) -> AsyncIterator[Callable[[list[ConsoleItem]], Awaitable[None]]]:
    """Keep chunks and dumps in the outbox, and deliver them meanwhile."""
    from agent.cli.queueing import open_outbox
    from agent.connect import connect
    from agent.errors import UsageError
    from agent.forwarding import Forwarder, utc_now
    from agent.observability.device_identity import DeviceIdentity
    from agent.observability.outbox import OutboxFull
    from agent.observability.outbox.delivery import Delivery
    from agent.observability.sender import ServiceSender

    serial = identity["device_serial"] or configuration.profile.kit.device_id
    if not serial:
        raise UsageError(
            "the service needs a name for the device",
            hint="--device-serial, or kit.device_id in the profile",
        )
    names = {name: value or "unknown" for name, value in identity.items()}
    device = DeviceIdentity(**{**names, "device_serial": serial})
    with open_outbox(configuration) as outbox:
        async with connect(configuration, unattended=True) as client:
            delivery = Delivery(outbox, ServiceSender(client))
            forwarder = Forwarder(outbox, device, wake=delivery.wake)
            task = asyncio.create_task(delivery.run())

            async def keep(items: list[ConsoleItem]) -> None:
                try:
                    await forwarder.take(items, utc_now())
                except OutboxFull as error:
                    note(f"not kept: {error}")

            try:
                yield keep
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await delivery.flush()
                totals = await outbox.ado(lambda store: store.totals())
                note(f"{delivery.done.items} delivered, {totals.waiting} wait in the outbox")


def _saving(folder: Path) -> Callable[[list[ConsoleItem]], Awaitable[None]]:
    """Append chunks to FOLDER/chunks.jsonl, write each dump to a file of its own; 0600."""
    from agent.cli.coredumps import DumpFiles
    from agent.config.private import make_private_folder
    from agent.console.chunk_lines import ChunkLine
    from agent.console.dump_lines import CapturedDump

    make_private_folder(folder)
    files = DumpFiles.unused(folder / "coredump.bin")
    chunks = folder / "chunks.jsonl"

    async def keep(items: list[ConsoleItem]) -> None:
        found = [item.chunk for item in items if isinstance(item, ChunkLine)]
        if found:
            text = "".join(f'{{"chunk": "{chunk.hex()}"}}\n' for chunk in found)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(os.open(chunks, flags, 0o600), "w") as file:
                file.write(text)
        for item in items:
            if isinstance(item, CapturedDump):
                path = files.write(item)
                note(f"core dump, {item.dump.status.value}: {path or 'no bytes'}")

    return keep


def _sum_up(reader: ConsoleReader) -> None:
    counts = asdict(reader.counts)
    if options().json:
        emit({"summary": counts})
        return
    shown = [f"{value} {name.replace('_', ' ')}" for name, value in counts.items() if value]
    note(", ".join(shown) or "nothing was heard")
