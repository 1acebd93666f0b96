"""Every process that a test starts, by subprocess or by asyncio, is ended with the test.

A test that fails in the middle need not clean up; one that passes and leaves a process is told.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

GRACE_S = 5.0  # for a process that is told to end, before it is killed


class StartedProcesses:
    """The processes that were started while `noting` stood in for the way to start one."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[Any]] = []

    def noting(self, start: Callable[..., None]) -> Callable[..., None]:
        """Return `subprocess.Popen.__init__` as it is, which is noted; asyncio comes here, too."""

        def noted(process: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
            start(process, *arguments, **options)
            self._all.append(process)

        return noted

    def end(self) -> list[str]:
        """End what still runs, stopped by a signal or not; return the commands of those."""
        left = [process for process in self._all if process.poll() is None]
        for process in left:
            _tell(process, signal.SIGTERM)
        for process in left:
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                _tell(process, signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        return [_command(process) for process in left]


def _tell(process: subprocess.Popen[Any], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
        if os.name == "posix":
            process.send_signal(signal.SIGCONT)


def _command(process: subprocess.Popen[Any]) -> str:
    words = process.args if isinstance(process.args, list | tuple) else [process.args]
    return " ".join(str(word) for word in words)
