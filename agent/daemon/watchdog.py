"""Messages to systemd and its watchdog; detectors of a stalled event loop and of a clock set.

systemd kills an agent whose event loop stalls for longer than its watchdog allows. The thread
reports a stall before that, so that the event of it is on disk.
"""

import asyncio
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.outbox.store import SMALLEST_STEP_S

_log = logging.getLogger(__name__)

LIMIT_S = 20.0
"""A longer turn of the event loop is a stall: long work is done in threads.

systemd waits for 120 s.
"""


def notify(state: str) -> None:
    """Send `state` ("READY=1") to systemd, if it started us (sd_notify(3)).

    Where it cannot be told, that is logged: the agent works as well without it. NOTIFY_SOCKET may
    be inherited by a shell or a container, from a service that has ended.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if sys.platform == "win32" or not address.startswith(("/", "@")):
        return
    # "@" stands for the zero byte of an abstract name.
    path = "\0" + address[1:] if address[0] == "@" else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)  # one that hangs does not stop the kits
        try:
            manager.connect(path)
            manager.send(state.encode())
        except OSError as error:
            told = state.partition("\n")[0]
            _log.warning("%s is not told to systemd at %s: %s", told, address, error.strerror)


def reloading() -> str:
    """Return the state that announces a reload; READY=1 ends it."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}"


def watchdog_s() -> float | None:
    """Return the timeout of systemd's watchdog for this process in seconds, None without one."""
    timeout_us, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not timeout_us.isascii() or not timeout_us.isdigit() or pid not in {"", str(os.getpid())}:
        return None
    return int(timeout_us) / 1_000_000 or None


@dataclass
class StallDetector:
    """Calls `report` in a thread of its own, once a stall, with words for a person."""

    report: Callable[[str], None]
    limit_s: float = LIMIT_S
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._alive_at = self.clock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall-detector", daemon=True)

    def start(self) -> None:
        """Begin to watch the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; call it in the loop that is watched."""
        self._timer.cancel()
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        self._alive_at = self.clock()
        self._timer = self._loop.call_later(self.limit_s / 4, self._beat)

    def _watch(self) -> None:
        reported, checked_at = False, self.clock()
        while not self._stopped.wait(self.limit_s / 4):
            before, checked_at = checked_at, self.clock()
            stalled_s = checked_at - self._alive_at
            if stalled_s <= self.limit_s:
                reported = False
            # Where this thread was late, too, it was the host that stopped the whole process.
            elif not reported and checked_at - before <= self.limit_s:
                reported = True
                where = self._where()
                self.report(f"the agent stands still for {stalled_s:.0f} s at {where}")

    def _where(self) -> str:
        """Return the innermost line of this program that the loop's thread executes."""
        frame = sys._current_frames().get(self._loop_thread)
        while frame is not None:
            module = str(frame.f_globals.get("__name__"))
            if module.partition(".")[0] in {"agent", "at"}:
                return f"{module}:{frame.f_lineno} ({frame.f_code.co_name})"
            frame = frame.f_back
        return "code outside of it"


class ClockStepDetector:
    """Compares the wall clock with the monotonic one that timers go by, both in seconds. Pure."""

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        self._offset_s = wall_s - monotonic_s

    def step(self, wall_s: float, monotonic_s: float) -> float:
        """Return by how many seconds the clock was set since the last call; 0.0 if it was not."""
        step_s = wall_s - monotonic_s - self._offset_s
        if abs(step_s) <= SMALLEST_STEP_S:
            return 0.0
        self._offset_s += step_s
        return step_s
