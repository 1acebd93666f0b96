"""Runs a program on a pseudo-terminal, and returns what a terminal would be told."""

import asyncio
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def on_a_terminal(
    *arguments: str, stdin: bytes = b"", python: str | Path = sys.executable, folder: Path = ROOT
) -> tuple[int, bytes]:
    """Run Python with these arguments; return its exit code and all that it wrote to both streams.

    Its standard input is a file with `stdin`.
    """
    ours, theirs = pty.openpty()
    reads, writes = os.pipe()
    os.write(writes, stdin)
    os.close(writes)
    process = subprocess.Popen(
        [str(python), *arguments], cwd=folder, stdin=reads, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.close(reads)
    written = b""
    try:
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:
        pass  # Linux: the far end of the terminal is closed
    finally:
        os.close(ours)
    return process.wait(60), written


def take_terminal() -> None:
    """Make its standard input the terminal of a new session: of a process before it begins.

    That one ends with its terminal, also where the tests are run below nohup.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


async def answered(answer: bytes, *arguments: str) -> tuple[int, str, str]:
    """Run `cellagent` with a terminal as its input, at which `answer` is typed.

    Returns its exit code, and what it wrote to standard output and to standard error.
    """
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", *arguments),
            stdin=theirs,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, said = await process.communicate()
    finally:
        os.close(ours)
        os.close(theirs)
    return process.returncode or 0, out.decode(), said.decode()
