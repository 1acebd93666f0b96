"""`provision run --watch` at a terminal: a scanner types there, and the screen is read."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping

from tests.support.commands.on_a_terminal import take_terminal

PATIENCE_S = 120.0
_PIECE_S = 0.05


class TypedBench:
    """A run whose three streams are a terminal of `columns` and `lines`."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], columns: int, lines: int
    ) -> None:
        self._ours, self._theirs = pty.openpty()
        theirs, self._open = self._theirs, True
        self.resize(columns, lines)
        self.before = termios.tcgetattr(theirs)
        self.written = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent", "provision", "run", *arguments],
            env=_of_a_window(environment),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            # The terminal is that of the run, which reads it in the foreground alone.
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
        )

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal's window another size, and tell the run."""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type as a scanner does: all at once, and Enter."""
        os.write(self._ours, text.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Read the screen until a pattern is written to it after what was found before."""
        self.until_true(lambda: re.search(pattern, self.written, re.DOTALL) is not None, pattern)
        found = re.search(pattern, self.written, re.DOTALL)
        assert found is not None
        self.written = self.written[found.end() :]
        return found

    def until_true(self, reached: Callable[[], bool], what: str) -> None:
        """Read the screen until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert self.process.poll() is None, self.written[-3000:]
            assert time.monotonic() < deadline, f"{what} never came: {self.written[-3000:]}"
            self._read()

    def end(self) -> int:
        """Stop it as Ctrl-C does; return its exit code."""
        self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.written[-3000:]
            self._read()
        self._read()
        return self.process.wait()

    def hang_up(self) -> int:
        """Close the terminal; return the exit code of the run."""
        os.close(self._theirs)
        os.close(self._ours)
        self._open = False
        return self.process.wait(PATIENCE_S)

    def restored(self) -> bool:
        """Tell whether the terminal shows again what is typed, line by line."""
        return termios.tcgetattr(self._theirs)[3] == self.before[3]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        if self._open:
            os.close(self._ours)
            os.close(self._theirs)

    def _read(self) -> None:
        if select.select([self._ours], [], [], _PIECE_S)[0]:
            self.written += os.read(self._ours, 65536).decode("utf-8", "replace")


def _of_a_window(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that names no size, as those of workers of a test do."""
    named = {"COLUMNS", "LINES"}
    return {name: environment[name] for name in environment.keys() - named} | {"TERM": "xterm"}


@contextlib.contextmanager
def typed_bench(
    *arguments: str, environment: Mapping[str, str], columns: int = 80, lines: int = 24
) -> Iterator[TypedBench]:
    bench = TypedBench([*arguments], environment, columns, lines)
    try:
        yield bench
    finally:
        bench.close()
