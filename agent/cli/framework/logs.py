"""The log of a running command or agent: on standard error, redacted."""

import json
import logging
import select
import shutil
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from agent.cli.framework.safe_text import drawing, printable
from agent.cli.framework.terminal import colours, folded, wrapped
from agent.redact import redact

_INDENT = " " * 11
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Log levels by the number of -v."""


class RedactingFormatter(logging.Formatter):
    """A log formatter whose whole output, traceback included, is redacted and printable."""

    def format(self, record: logging.LogRecord) -> str:
        """Format as the base class does, then hide secrets and control characters."""
        return printable(redact(super().format(record)))


def log_to_stderr(verbosity: int) -> None:
    """Send the log of this process to standard error; `verbosity` is the number of -v."""
    handler = logging.StreamHandler()
    plain = "cellagent: %(message)s" if verbosity == 0 else "%(levelname)s %(name)s: %(message)s"
    handler.setFormatter(_Folded(plain))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(LEVELS[min(verbosity, len(LEVELS) - 1)])


def log_of_the_agent(verbosity: int) -> None:
    """Send the agent's log to standard error: for people on a terminal, JSON elsewhere.

    Each line says which kit and which concern it is about.
    """
    from agent.daemon.log_lines import RepeatedLines
    from agent.daemon.supervisor import add_log_context

    handler = _Unhindered(drawing(sys.stderr))
    handler.setFormatter(_ForPeople() if sys.stderr.isatty() else _Json())
    if verbosity == 0:
        handler.addFilter(RepeatedLines())
    handler.addFilter(add_log_context)
    root = logging.getLogger()
    root.handlers = [handler]
    level = (logging.INFO, logging.DEBUG)[min(verbosity, 1)]
    root.setLevel(level)
    # These log each try; the concern logs the same trouble once.
    quiet = logging.CRITICAL if verbosity == 0 else level
    for name in ("agent.outbox.delivery_loop", "agent.http.client"):
        logging.getLogger(name).setLevel(quiet)
    for name in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)


def takes_more(stream: TextIO, wait_s: float = 0.0) -> bool:
    """Return whether a line can be written at once: a pipe may not be read, a terminal stopped."""
    if sys.platform == "win32":  # there only sockets tell
        return True
    try:
        return bool(select.select([], [stream.fileno()], [], wait_s)[1])
    except (OSError, ValueError):  # it tells what is wrong when it is written to
        return True


class _Unhindered(logging.StreamHandler[TextIO]):
    """Keeps the lines for which it would have to wait: the whole agent would stand still.

    They are written before a later one, or at the end; of many the newest are kept.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: deque[str] = deque(maxlen=1000)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, and those that were kept."""
        try:
            self._lines.append(self.format(record) + self.terminator)
            self._write()
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)

    def flush(self) -> None:
        """Write what was kept; called at the end of the process."""
        with suppress(OSError, ValueError):
            self._write(1.0)

    def _write(self, wait_s: float = 0.0) -> None:
        while self._lines and takes_more(sys.stderr, wait_s):
            self.stream.write(self._lines.popleft())
            self.stream.flush()


class _Folded(RedactingFormatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the message in lines that fit the terminal."""
        return folded(super().format(record), sys.stderr)


class _ForPeople(RedactingFormatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return time, kit and concern, then the message, in lines that fit the terminal."""
        kit, concern = getattr(record, "kit", ""), getattr(record, "concern", "")
        about = " ".join(word for word in (kit, concern) if word)
        when = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        mark = "!" if record.levelno >= logging.WARNING else " "
        first = f"{when} {mark} {printable(about)}: " if about else f"{when} {mark} "
        width = shutil.get_terminal_size().columns
        lines: list[str] = []
        for line in super().format(record).replace("; try: ", "\ntry: ").splitlines():
            lines += wrapped(line, _INDENT if lines else first, _INDENT, width)
        text = "\n".join(lines or [first])
        warns = mark == "!" and colours(sys.stderr)
        return text.replace(" ! ", " \x1b[33m!\x1b[m ", 1) if warns else text


class _Json(RedactingFormatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps(
            {
                "time": when,
                "level": record.levelname.lower(),
                "kit": getattr(record, "kit", "") or None,
                "concern": getattr(record, "concern", "") or None,
                "message": super().format(record),
                "logger": record.name,
            },
            ensure_ascii=False,
        )
