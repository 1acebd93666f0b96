"""How far an update is, on standard error."""

import sys
import time
from collections.abc import Callable

from agent.cli.framework.command import note
from agent.cli.framework.terminal import overwrite_line, progress_bar
from agent.fota.journal import JobResult
from agent.fota.reporter import UpdateObserver

_PAUSE_S = 0.1


class ProgressOnStderr(UpdateObserver):
    """Shows stages as lines, and progress as one line that is overwritten."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._terminal = sys.stderr.isatty()
        self._what = ""
        self._start = self._start_bytes = 0.0
        self._shown = 0.0
        self._tenth = 0
        self._open = False
        self.result: JobResult | None = None
        """That of the job that ended, which is not shown here: the command prints it."""

    def ended(self, result: JobResult) -> None:
        """Keep the result."""
        self._close()
        self.result = result

    def stage(self, text: str) -> None:
        """Write a line."""
        self._close()
        note(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Show the progress bar; with a `total` of 0, `what` alone."""
        now = self._monotonic()
        if total <= 0:
            if what:
                self.stage(what)
            return
        if what != self._what or done < self._start_bytes:
            self._close()
            self._what, self._start, self._start_bytes, self._tenth = what, now, done, 0
        if self._terminal:
            if done < total and now - self._shown < _PAUSE_S:
                return
            self._shown = now
            overwrite_line(self.line(done, total, now))
            self._open = True
            if done >= total:
                self._close()
        elif done * 10 // total > self._tenth:
            self._tenth = done * 10 // total
            note(self.line(done, total, now))

    def line(self, done: int, total: int, now: float) -> str:
        """Return "download [####    ]  42 %  1.2 MB/s  0:03 left", at most 79 characters."""
        text = progress_bar(self._what, done, total)
        elapsed = now - self._start
        if elapsed > 0 and done > self._start_bytes:
            rate = (done - self._start_bytes) / elapsed
            left = round((total - done) / rate)
            text += f"  {_rate(rate)}  {left // 60}:{left % 60:02d} left"
        return text[:79]

    def _close(self) -> None:
        if self._open:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._open = False


def _rate(bytes_per_s: float) -> str:
    for unit in ("B", "kB", "MB"):
        if bytes_per_s < 1000:
            return f"{bytes_per_s:.1f} {unit}/s"
        bytes_per_s /= 1000
    return f"{bytes_per_s:.1f} GB/s"
