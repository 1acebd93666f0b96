"""Where the log goes while a command runs: standard error, redacted."""

from __future__ import annotations

import logging

from agent.cli.terminal import printable
from agent.redact import redact

LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""By the number of -v."""


class RedactingFormatter(logging.Formatter):
    """A log formatter whose whole output, traceback included, is redacted and printable."""

    def format(self, record: logging.LogRecord) -> str:
        """Format as the base class does, then hide secrets and control characters."""
        return printable(redact(super().format(record)))


def log_to_stderr(verbosity: int) -> None:
    """Send the log of this process to standard error; `verbosity` is the number of -v."""
    handler = logging.StreamHandler()
    plain = "cellagent: %(message)s" if verbosity == 0 else "%(levelname)s %(name)s: %(message)s"
    handler.setFormatter(RedactingFormatter(plain))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(LEVELS[min(verbosity, len(LEVELS) - 1)])
    # Each retry is told once, by the client, with its reason.
    logging.getLogger("stamina").setLevel(logging.ERROR)
