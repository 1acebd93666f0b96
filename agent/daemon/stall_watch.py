"""Sees from a thread of its own that the event loop stands still, and where.

systemd kills an agent that stands still for longer than its watchdog allows. This tells of it
before, so that the event of it is on disk.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def notify(state: str) -> None:
    """Send `state` ("READY=1") to systemd, if it is there; an "@" stands for an abstract name."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as told:
        told.connect("\0" + address[1:] if address[0] == "@" else address)
        told.sendall(state.encode())


def reloading() -> str:
    """Return the state that announces a reload; READY=1 ends it."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"


def watchdog_s() -> float | None:
    """Return how often systemd wants a sign of life, None if it wants none."""
    wanted, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not wanted.isascii() or not wanted.isdigit() or pid not in {"", str(os.getpid())}:
        return None
    return int(wanted) / 1_000_000 or None


LIMIT_S = 20.0
"""No turn of the loop takes this long: what may is done in threads. systemd waits for 120 s."""


class StallWatch:
    """Calls `report` in its thread, once a stall, with words for a person."""

    def __init__(
        self,
        report: Callable[[str], None],
        *,
        limit_s: float = LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._limit_s = limit_s
        self._clock = clock
        self._alive_at = clock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall-watch", daemon=True)

    def start(self) -> None:
        """Begin, in the event loop that is to be watched."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._timer.cancel()
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        self._alive_at = self._clock()
        self._timer = self._loop.call_later(self._limit_s / 4, self._beat)

    def _watch(self) -> None:
        told, looked_at = False, self._clock()
        while not self._over.wait(self._limit_s / 4):
            before, looked_at = looked_at, self._clock()
            stands_s = looked_at - self._alive_at
            if stands_s <= self._limit_s:
                told = False
            # Where this thread was late, too, it was the host that stopped the whole process.
            elif not told and looked_at - before <= self._limit_s:
                told = True
                self._report(f"the agent stands still for {stands_s:.0f} s at {self._place()}")

    def _place(self) -> str:
        """Return the innermost place in this program where the loop's thread is."""
        frame = sys._current_frames().get(self._loop_thread)
        while frame is not None:
            module = str(frame.f_globals.get("__name__"))
            if module.partition(".")[0] in {"agent", "at"}:
                return f"{module}:{frame.f_lineno} ({frame.f_code.co_name})"
            frame = frame.f_back
        return "a place that is not its own"
