"""What the console reader makes of printed bytes."""

from agent.console.line_classifier import ConsoleItem, ConsoleReader
from tests.support.dumps.zephyr_dumps import arch, header, memory

DUMP = header() + arch() + memory(0x20000000, bytes(range(100)))
"""A small core dump of Zephyr."""


def items_of(*pieces: bytes) -> list[ConsoleItem]:
    """Return the items of everything that a kit prints, which arrives in `pieces`."""
    reader = ConsoleReader()
    return [item for piece in pieces for item in reader.receive(piece)] + reader.finish()
