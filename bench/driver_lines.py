"""Long answers and endless lines: no wait of our own, and time in proportion to the bytes."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from pty_modem import ANSWERS, serving
from trials.measure import Row

from at.driver.modem import open_modem
from at.protocol.line.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "driver-lines"
LINE_TIME_RATIO, DOUBLE_RATIO = 1.1, 2.2
BODY = b"".join(b'+X: %d,"0123456789abcdef0123456789abcdef"\r\n' % n for n in range(10))
REPLY = b"\r\n" + BODY + b"\r\nOK\r\n"


def at_line_speed(master: int) -> None:
    """Answer AT+X with ten lines, as slowly as 115200 baud."""
    buffer = b""
    while True:
        buffer += os.read(master, 4096)
        while b"\r" in buffer:
            command, _, buffer = buffer.partition(b"\r")
            if command != b"AT+X":
                os.write(master, ANSWERS.get(command, b"\r\nOK\r\n"))
                continue
            started = time.perf_counter()
            for at in range(0, len(REPLY), 32):
                os.write(master, REPLY[at : at + 32])
                due = started + (at + 32) * 10 / 115200
                while time.perf_counter() < due:
                    time.sleep(0.0005)


def run(smoke: bool) -> Iterator[Row]:
    with serving(at_line_speed, modem_cpu=1) as path:
        control = raw(path, 3 if smoke else 15)
    with serving(at_line_speed, modem_cpu=1) as path:
        ours = asyncio.run(driver(path, 3 if smoke else 15))
    yield Row(
        "an answer of 10 lines at 115200 baud",
        ours * 1000,
        "ms",
        control * LINE_TIME_RATIO * 1000,
        f"raw read {control * 1000:.1f} ms",
    )
    size = 1 << (17 if smoke else 20)
    one = min(endless(size) for _ in range(3))
    two = min(endless(2 * size) for _ in range(3))
    yield Row(
        f"{2 * size >> 10} kB without a line end",
        two * 1000,
        "ms",
        one * DOUBLE_RATIO * 1000,
        f"{size >> 10} kB: {one * 1000:.1f} ms",
    )


def raw(path: str, count: int) -> float:
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    times = []
    for _ in range(count):
        started = time.perf_counter()
        os.write(fd, b"AT+X\r")
        got = b""
        while not got.endswith(b"OK\r\n"):
            got += os.read(fd, 4096)
        times.append(time.perf_counter() - started)
    os.close(fd)
    return sorted(times)[count // 2]


async def driver(path: str, count: int) -> float:
    async with open_modem(path) as modem:
        times = []
        for _ in range(count):
            started = time.perf_counter()
            assert len((await modem.execute("AT+X")).lines) == 10
            times.append(time.perf_counter() - started)
        return sorted(times)[count // 2]


def endless(size: int) -> float:
    machine = Exchange()
    machine.start("AT")
    piece = b"x" * 64
    started = time.perf_counter()
    for _ in range(size // 64):
        for _item in machine.feed(piece):
            pass
    return time.perf_counter() - started
