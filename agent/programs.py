"""Programs of the user's, run beside ours: what they print, bounded, and how they are ended."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable

_LINE_CHARACTERS = 200
_GRACE_S = 5.0
KILL: int = getattr(signal, "SIGKILL", signal.SIGTERM)  # which Windows has not


async def follow(output: asyncio.StreamReader, on_line: Callable[[str], None]) -> str:
    """Pass on what a program prints, in bounded lines, until it ends; return the last."""
    last, pending = "", b""
    while piece := await output.read(4096):
        *whole, pending = (pending + piece).splitlines() or [b""]
        if piece.endswith((b"\n", b"\r")):
            whole, pending = [*whole, pending], b""
        pending = pending[:_LINE_CHARACTERS]
        for line in whole:
            last = line.decode("utf-8", "backslashreplace").strip()[:_LINE_CHARACTERS] or last
            on_line(last)
    return pending.decode("utf-8", "backslashreplace").strip() or last


def send_signal(process: asyncio.subprocess.Process, number: int) -> None:
    """Send a signal to a program, which may have ended of the same one meanwhile.

    asyncio's own way looks whether it has, and takes the exit code from who waits for it: 255 is
    told in its place (CPython issue 87744).
    """
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.send_signal(number)
        else:
            os.kill(process.pid, number)


def kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill a program that leads a session, and what it started; also where it has itself ended."""
    _signal_group(process, KILL)


async def end(process: asyncio.subprocess.Process) -> None:
    """End a program and what it started: by SIGTERM, and by SIGKILL after a moment."""
    try:
        if process.returncode is None:
            await _stop(process)
    except asyncio.CancelledError:
        kill_group(process)  # who is ended itself gives it no time
        raise
    finally:
        # Its pipes would be closed once they are read to their end, which another program may hold
        # open; and not at all where a second Ctrl-C ends this.
        process._transport.close()  # type: ignore[attr-defined] # asyncio offers no other way


async def _stop(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, KILL):
        _signal_group(process, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await process.wait()
                return


def _signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()
