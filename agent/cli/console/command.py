"""`cellagent console`: the kit's logs, live; chunks and core dumps are taken out and counted."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli.framework.command import agent_command
from agent.cli.framework.file_type import FILE
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.session import Session, held_kit
from agent.console.log_line import RANK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.cli.console.window import ConsoleWindow
    from agent.console.line_classifier import ConsoleItem
    from agent.observability.ingest.device_identity import PartialIdentity
    from agent.wiring.forwarding import HandleItems


@agent_command("cellagent console --port /dev/ttyACM0 --level warning --forward")
@click.option("--level", type=click.Choice(list(RANK)), help="Hide log lines below this level.")
@click.option("--match", default="", metavar="TEXT", help="Show only lines that hold TEXT.")
@click.option("--forward", is_flag=True, help="Deliver chunks and core dumps to the service.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write chunks and core dumps to files.",
)
@click.option("--send", "lines", multiple=True, metavar="LINE", help="Write a line to the kit.")
@click.option(
    "--elf",
    type=FILE,
    help="The firmware's ELF file: names the function that crashed, and the threads.",
)
@click.option("--device-serial", help="The device at the service; default: kit.device_id.")
@click.option("--hardware-version", help="The board, as `nrf9161dk`; default: what is known.")
@click.option("--software-type", help="The component, as `main`; default: what is known.")
@click.option("--software-version", help="Its version; default: what is known.")
@click.option("--baud", type=click.IntRange(min=1), help="Speed of the line.")
@click.option("--seconds", type=Seconds(0), help="Stop after so many seconds.")
async def command(
    session: Session, *, level: str | None, match: str, elf: Path | None, **given: object
) -> None:
    """Show what the kit prints, in colour; chunks and core dumps are taken out and counted.

    Lines that you type are sent to the kit. Unplugging the kit does not end the command; Ctrl-C
    does.
    """
    from agent.cli.console.window import ConsoleWindow
    from agent.observability.coredumps.symbols import ElfSymbols

    window = ConsoleWindow(session.json, level, match, None if elf is None else ElfSymbols(elf))
    try:
        await _console(session, window, msgspec.convert(given, _ConsoleOptions))
    finally:
        window.close()


@dataclass(frozen=True, slots=True)
class _ConsoleOptions:
    """The values of the options that do not choose what the window shows."""

    forward: bool
    save: Path | None
    lines: tuple[str, ...]
    baud: int | None
    seconds: float | None
    device_serial: str | None
    hardware_version: str | None
    software_type: str | None
    software_version: str | None

    @property
    def identity(self) -> PartialIdentity:
        """The names of the device that are given by option."""
        from agent.observability.ingest.device_identity import PartialIdentity

        given = self.device_serial, self.hardware_version, self.software_type, self.software_version
        return PartialIdentity(*(name or "" for name in given))


async def _console(session: Session, window: ConsoleWindow, given: _ConsoleOptions) -> None:
    from agent.cli.console.sinks import FileSink, device_identity, outbox_sink
    from agent.cli.console.sources import AgentSource, PortSource, TypedLines
    from agent.cli.framework.signals import reader_left
    from agent.tasks import first_of
    from agent.wiring.forwarding import StoreThenShow

    kit = session.kit
    if given.baud:
        kit = msgspec.structs.replace(kit, baud=given.baud)
    names = device_identity(session, given.identity)
    held = await held_kit(kit.port, session.usb_ports, to_watch=True)
    sinks: list[HandleItems] = []

    way = StoreThenShow(sinks)

    def show(items: Sequence[ConsoleItem]) -> None:
        for item in items:
            window.show(item)

    async def handle(items: Sequence[ConsoleItem]) -> None:
        await way.handle(items, show)

    async with AsyncExitStack() as stack:
        if given.forward and held is None:
            sinks.append(await stack.enter_async_context(outbox_sink(session, names, window.note)))
        if given.save is not None:
            files = FileSink(given.save, names, window.note)
            stack.push_async_callback(files.close)
            sinks.append(files.store)
        source: PortSource | AgentSource
        if held is None:
            source = PortSource(
                kit, window, handle, TypedLines(given.lines), listing=session.usb_ports
            )
        else:
            source = AgentSource(held, window, handle, TypedLines(given.lines))
            _note_unused_options(window.note, given)
        try:
            async with asyncio.timeout(given.seconds):
                await first_of(source.run(), reader_left())
        except TimeoutError:
            pass
        finally:
            await source.finish()
            window.show_summary(source.counts)


def _note_unused_options(note: Callable[[str], None], given: _ConsoleOptions) -> None:
    if given.forward:
        note("the running agent delivers chunks and core dumps already: --forward adds nothing")
    if given.baud:
        note("--baud is not used: the running agent reads the port, at kit.baud")
