"""Runs that kill themselves at one of their steps: each a fork of one process, which imports once.

with killed_runs(PROGRAM) as run:  # it defines `run(folder, step)`
    code, said = run(folder, 3)
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
for line in sys.stdin:
    folder, _, step = line.rpartition(" ")
    if not os.fork():
        run(Path(folder), int(step))
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
