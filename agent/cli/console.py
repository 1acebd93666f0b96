"""`cellagent console`: the kit's logs, live; chunks and core dumps lifted out and counted."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.console_window import RANK, ConsoleWindow
from agent.cli.frame import AgentCommand, options, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.console.reader import ConsoleItem


@click.command(
    cls=AgentCommand,
    epilog="Example: cellagent console --port /dev/ttyACM0 --level warning --forward",
)
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
@click.option("--device-serial", help="The device at the service; default: kit.device_id.")
@click.option("--hardware-version", help="The board, as `nrf9161dk`; default: what is known.")
@click.option("--software-type", help="The component, as `main`; default: what is known.")
@click.option("--software-version", help="Its version; default: what is known.")
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
    window = ConsoleWindow(level, match)
    run(_console(window, lines, forward, save, baud, seconds, identity))


async def _console(
    window: ConsoleWindow,
    lines: tuple[str, ...],
    forward: bool,
    save: Path | None,
    baud: int | None,
    seconds: float | None,
    identity: dict[str, str | None],
) -> int:
    import msgspec

    from agent.cli.console_keeping import forwarding, names_of, saving
    from agent.cli.console_listening import listen
    from agent.cli.kit import chosen_kit
    from agent.config import load
    from agent.console.reader import ConsoleReader

    given = options()
    configuration = load(given.profile, port=given.port)
    kit = chosen_kit()
    if baud:
        kit = msgspec.structs.replace(kit, baud=baud)
    names = names_of(kit, identity)
    reader = ConsoleReader()
    keepers: list[Callable[[list[ConsoleItem]], Awaitable[None]]] = []
    async with AsyncExitStack() as stack:
        if forward:
            keepers.append(await stack.enter_async_context(forwarding(configuration, names)))
        if save is not None:
            keepers.append(saving(save, names))

        async def take(items: list[ConsoleItem]) -> None:
            for keep in keepers:  # before anything is shown: the kit says it once
                await keep(items)
            for item in items:
                window.show(item)

        try:
            async with asyncio.timeout(seconds):
                await listen(kit, reader, take, lines)
        except TimeoutError:
            pass
        finally:
            await take(reader.finish())
            window.sum_up(reader.counts)
    return 0
