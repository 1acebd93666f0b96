"""Ctrl-C ends a command also when the system hands the signal to another of its threads."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The thread takes the signal itself, once the main thread sleeps: what is left to wake that is
# nothing but the wake-up of the loop.
PROGRAM = """
import asyncio, os, signal, threading
from agent.cli.framework.command import run

main = os.getpid()

def interrupt():
    while "epoll" not in open(f"/proc/{main}/task/{main}/wchan").read():
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def sleep():
    threading.Thread(target=interrupt, daemon=True).start()
    await asyncio.Event().wait()

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    run(sleep())
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a thread sleeps")
def test_a_signal_that_another_thread_takes_wakes_the_loop():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr
