"""A flood of 60-byte notices at 1 Mbaud, and what more kinds of notices cost."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from pty_modem import ANSWERS, serving
from trials.measure import Row

import at.commands.cells  # noqa: F401 - it reads those that are typed
from at.driver.modem import Modem, open_modem
from at.protocol import notices
from tests.support.modem.memory_transport import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "driver-notices"
BYTES_PER_S = 100_000  # 1 Mbaud, 8N1
LINES = {
    "": b'+CMTI: "SM",',  # which no parser reads, as readline reads none
    " of cells, typed": b'%NCELLMEAS: 0,"11B07","26295","00B7",512,6400,230,40,9,',
}
LINES = {what: line.ljust(58, b"1") + b"\r\n" for what, line in LINES.items()}
CPU_RATIOS, KINDS_RATIO = (1 / 12, 1 / 6), 1.2


def flood(line: bytes, count: int) -> Callable[[int], None]:
    """Return a far end that sends `count` notices at line speed, a USB frame's worth at a time."""

    def work(master: int) -> None:
        buffer = b""
        while b"GO" not in buffer:
            buffer += os.read(master, 4096)
            if b"CMEE?" in buffer:
                os.write(master, ANSWERS[b"AT+CMEE?"])
                buffer = b""
        data, sent, started, tick = line * count, 0, time.perf_counter(), 0
        while sent < len(data):
            tick += 1
            due = min(len(data), BYTES_PER_S * tick // 500)
            while sent < due:
                sent += os.write(master, data[sent:due])
            if (left := started + tick / 500 - time.perf_counter()) > 0:
                time.sleep(left)
        os.write(master, b"\r\nOK\r\n")
        os.read(master, 1)

    return work


def run(smoke: bool) -> Iterator[Row]:
    count = BYTES_PER_S // 60 * (1 if smoke else 5)
    control = float("inf")
    cpu = dict.fromkeys(LINES, control)
    lost = 0
    for _ in range(1 if smoke else 3):
        for what, line in LINES.items():
            with serving(flood(line, count), modem_cpu=1) as path:
                control = min(control, readline(path, count))
            with serving(flood(line, count), modem_cpu=1) as path:
                used, missing = asyncio.run(driver(path, line, count))
                cpu[what], lost = min(cpu[what], used), lost + missing
    shown = f"pyserial readline {control:.2f} s for {count} lines, best of each"
    yield Row("notices lost at 1 Mbaud", lost, "lines", 0)
    for (what, used), ratio in zip(cpu.items(), CPU_RATIOS, strict=True):
        yield Row(f"CPU of the driver at 1 Mbaud{what}", used, "s", control * ratio, shown,
                  peer=("pyserial readline", control))  # fmt: skip
    one = dispatch(1, smoke)
    many = dispatch(200, smoke)
    yield Row(
        "a notice among 200 kinds",
        many,
        "us",
        one * KINDS_RATIO,
        f"{one:.2f} us where there is 1 kind",
    )


def readline(path: str, count: int) -> float:
    import serial

    with serial.Serial(path, 115200, timeout=5) as port:
        port.write(b"GO\r")
        started = time.process_time()
        for _ in range(count):
            port.readline()
        return time.process_time() - started


async def driver(path: str, line: bytes, count: int) -> tuple[float, int]:
    async with open_modem(path) as modem:
        with modem.notices(line.partition(b":")[0].decode(), limit=count) as stream:
            started = time.process_time()
            await modem.execute("ATGO", timeout_s=60)
            got = 0
            while stream.queue:
                got += not isinstance(await anext(stream), notices.Malformed)
            cpu = time.process_time() - started
        modem._cmee_before = None  # its far end is no modem any more
        return cpu, count - got + stream.dropped


def dispatch(kinds: int, smoke: bool) -> float:
    """Return microseconds for one notice where `kinds` kinds are registered and subscribed."""
    rounds = 20 if smoke else 200
    before = dict(notices._parsers)
    line = LINES[""]
    names = [line.partition(b":")[0].decode(), *(f"%KIND{number}" for number in range(1, kinds))]

    def read(name: str) -> notices.Parser:
        return lambda line, _context: notices.Notice(name, line)

    for name in names:
        notices.register(name, read(name))
    modem = Modem(MemoryTransport())
    try:
        with_all = [modem.notices(name, limit=16) for name in names]
        data = line * 50
        best = float("inf")
        for _ in range(rounds):
            started = time.perf_counter()
            modem._link.data_received(data)
            best = min(best, time.perf_counter() - started)
        assert len(with_all) == kinds
        assert len(with_all[0].queue) == 16  # they were delivered
        return best / 50 * 1e6
    finally:
        notices._parsers.clear()
        notices._parsers.update(before)
