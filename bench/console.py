"""Reading a console at 1 Mbaud with chunks and core dumps mixed in: nothing lost, little time."""

from __future__ import annotations

import base64
import time
import tracemalloc
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.line_classifier import ConsoleReader
from agent.console.log_line import LogLine
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "console"
LINE_BYTES_PER_S = 100_000  # 1 Mbaud, 8N1
SHARE = 0.06
"""Of a core."""
LOG = b"[00:00:%02d.%03d,456] <inf> app: a line of log text, sixty bytes\r\n"


def console_text(seconds: int) -> tuple[bytes, int, int]:
    """Return what a kit prints in `seconds`, and how many chunks and log lines that is."""
    chunk = b"MC:" + base64.b64encode(bytes(range(78))) + b":\r\n"
    dump = printed(header() + arch() + memory(0x20000000, bytes(4096)))
    text = bytearray()
    chunks = logs = 0
    while len(text) < seconds * LINE_BYTES_PER_S:
        for number in range(40):
            text += LOG % (number % 60, number)
            logs += 1
            if number % 4 == 0:
                text += chunk
                chunks += 1
        text += dump
    return bytes(text), chunks, logs


def run(smoke: bool) -> Iterator[Row]:
    text, chunks, logs = console_text(1 if smoke else 10)
    pieces = [text[at : at + 512] for at in range(0, len(text), 512)]
    best = float("inf")
    for _ in range(1 if smoke else 5):
        reader = ConsoleReader()
        heard = []
        started = time.process_time()
        for piece in pieces:
            heard += reader.receive(piece)
        best = min(best, time.process_time() - started)
    lost = chunks - sum(isinstance(item, ChunkLine) for item in heard)
    lost += logs - sum(isinstance(item, LogLine) for item in heard)
    bad = [item for item in heard if isinstance(item, CapturedDump) and not item.dump.usable]
    yield Row("chunks, lines and dumps lost or damaged", lost + len(bad), "items", 0)
    share = best / (len(text) / LINE_BYTES_PER_S)
    yield Row("reading at 1 Mbaud", 100 * share, "% of a core", 100 * SHARE)

    dump = header() + memory(0x20000000, bytes(512 * 1024))
    text = printed(dump)
    pieces = [text[at : at + 4096] for at in range(0, len(text), 4096)]
    reader = ConsoleReader()
    tracemalloc.start()
    captured = [item for piece in pieces for item in reader.receive(piece)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(captured[0], CapturedDump)
    assert captured[0].dump.usable
    yield Row("memory of a dump of 512 KiB", peak / len(dump), "times its size", 2.0)
