"""What the driver adds to a raw round trip on a PTY, beside what pyserial adds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, ClassVar

from pty_modem import serving
from trials.measure import Row, median_us

from at.driver.modem import open_modem
from at.protocol.command import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

NAME = "driver-round-trip"
PASS_THROUGH_RATIO, TYPED_RATIO = 1.0, 0.8
"""Of what `read_until` adds to a raw round trip."""
ONE, READ = b"AT\r", b"AT+CFUN?\r"
SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""


class Mode(Command[int], frozen=True):
    prefix: ClassVar[str] = "+CFUN"

    def encode(self) -> str:
        return "AT+CFUN?"

    def parse(self, lines: Sequence[str]) -> int:
        return int(lines[0].partition(": ")[2])


def run(smoke: bool) -> Iterator[Row]:
    # By turns, and often: what a machine takes for a switch of processes wanders by the minute.
    rounds, count = (1, 200) if smoke else (35, 300)
    for placement, modem_cpu in (("one CPU", 0), ("two CPUs", 1)):
        found: dict[str, list[float]] = {}
        with awake({0, modem_cpu}):
            for _ in range(rounds):
                for name, measure in CLIENTS.items():
                    with serving(modem_cpu=modem_cpu) as path:
                        found.setdefault(name, []).append(measure(path, count))
        us = {name: statistics.median(values) for name, values in found.items()}
        until = us["read_until"] - us["raw"]
        added = us["execute"] - us["raw"]
        typed = us["send"] - us["raw read"]
        control = f"raw {us['raw']:.1f}, read_until adds {until:.1f} us"
        yield Row(
            f"raw pass-through adds, {placement}", added, "us", PASS_THROUGH_RATIO * until, control
        )
        yield Row(f"a typed command adds, {placement}", typed, "us", TYPED_RATIO * until, control,
                  peer=("pyserial read_until", until))  # fmt: skip


@contextlib.contextmanager
def awake(cpus: set[int]) -> Iterator[None]:
    """Keep processors from sleeping: of a virtual machine, to wake one takes longer than a command.

    What keeps them awake gives way at once to all else.
    """
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN, str(cpu)]) for cpu in cpus]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def raw(path: str, count: int, command: bytes = ONE) -> float:
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)

    def once() -> None:
        os.write(fd, command)
        got = b""
        while not got.endswith(b"OK\r\n"):
            got += os.read(fd, 4096)

    median_us(once, 50)
    result = median_us(once, count)
    os.close(fd)
    return result


def raw_read(path: str, count: int) -> float:
    return raw(path, count, READ)


def read_until(path: str, count: int) -> float:
    import serial

    with serial.Serial(path, 115200, timeout=2) as port:

        def once() -> None:
            port.write(ONE)
            port.read_until(b"OK\r\n")

        median_us(once, 50)
        return median_us(once, count)


def driver(typed: bool) -> Callable[[str, int], float]:
    async def session(path: str, count: int) -> float:
        async with open_modem(path) as modem:
            mode = Mode()

            async def execute() -> object:
                return await modem.execute("AT")

            async def send() -> object:
                return await modem.send(mode)

            once: Callable[[], Awaitable[object]] = send if typed else execute
            times = []
            for number in range(50 + count):
                started = time.perf_counter_ns()
                await once()
                if number >= 50:
                    times.append(time.perf_counter_ns() - started)
            return statistics.median(times) / 1000

    return lambda path, count: asyncio.run(session(path, count))


CLIENTS: dict[str, Callable[[str, int], float]] = {
    "raw": raw,
    "read_until": read_until,
    "execute": driver(typed=False),
    "raw read": raw_read,
    "send": driver(typed=True),
}
