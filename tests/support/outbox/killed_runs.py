"""Runs that kill themselves at one of their steps: each a fork of one process, which imports once.

with killed_runs(PROGRAM) as run:  # it defines `run(folder)`, and STEPS, audit events
    code, said = run(folder, 3)

A step is an event of STEPS or a write, but for what is written to standard output.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_EACH = """
import os, sys
from pathlib import Path
PROGRAM
write = os.write
def at_step():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), 9)
def counted(descriptor, data):
    if descriptor != 1:
        at_step()
    return write(descriptor, data)
for line in sys.stdin:
    folder, _, step = line.rpartition(" ")
    if not os.fork():
        left = int(step)
        os.write = counted
        sys.addaudithook(lambda name, _: name in STEPS and at_step())
        run(Path(folder))
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@contextmanager
def killed_runs(program: str) -> Iterator[Callable[[Path, int], tuple[int, list[str]]]]:
    """Give what runs the program's `run`: it returns the exit code, and the lines it printed."""
    with subprocess.Popen(
        [sys.executable, "-c", _EACH.replace("PROGRAM", program)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        told, printed = process.stdin, process.stdout

        def run(folder: Path, step: int) -> tuple[int, list[str]]:
            print(folder, step, file=told, flush=True)
            said: list[str] = []
            for line in printed:
                if line.startswith("ended "):
                    return int(line.split()[1]), said
                said.append(line.strip())
            raise AssertionError("the process that forks has ended")

        yield run
