"""A virtual kit with its companion, both on real terminals of this loop; the test moves it.

async with moving_kit(tmp_path) as kit:
    kit.go_to(63.42, 10.39)
    Companion(str(kit.companion)); open_modem(str(kit.port))
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from at.virtual.modem import Port, VirtualModem
from at.virtual.options import VirtualOptions
from at.virtual.radio_world import Coordinates, load_world
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem


@dataclass(frozen=True, slots=True)
class MovingKit:
    """`port` answers AT, `companion` ESP-AT; `modem.kit.position` is its true position."""

    port: Path
    companion: Path
    modem: VirtualModem

    def go_to(self, lat: float, lon: float) -> None:
        """Move the kit there; it stays until it is moved again."""
        self.modem.kit.position_hook = Coordinates(lat, lon)


def path() -> list[tuple[float, float]]:
    """Return the points of the path in the file of the radio world."""
    world = load_world()
    count = len(world._path)
    return [(p.lat, p.lon) for p in (world.position(60.0 * step) for step in range(count))]


@contextlib.asynccontextmanager
async def kit_on(
    port: Path,
    companion: Path,
    options: VirtualOptions,
    receives: Callable[[ModemRunner], Callable[[bytes], None]] = lambda kit: kit.receive,
) -> AsyncIterator[ModemRunner]:
    """Serve a virtual kit on two terminals; `receives` returns what takes the bytes sent to it."""
    runner = ModemRunner(make_modem(options))
    with (
        contextlib.closing(PtyServer(port, receives(runner))) as own,
        contextlib.closing(
            PtyServer(companion, partial(runner.receive, port=Port.COMPANION))
        ) as other,
    ):
        runner.attach(Port.AT, own.send)
        runner.attach(Port.COMPANION, other.send)
        runner.start()
        try:
            yield runner
        finally:
            runner.stop()


@contextlib.asynccontextmanager
async def moving_kit(folder: Path, **options: Any) -> AsyncIterator[MovingKit]:
    """Serve the kit until the block ends; `options` are fields of `VirtualOptions`."""
    port, companion = folder / "at", folder / "companion"
    async with kit_on(port, companion, VirtualOptions(**{"instant": True, **options})) as runner:
        yield MovingKit(port, companion, runner.modem)
