"""From an exception to an exit code, a kind, a message and what to try."""

from __future__ import annotations

from agent.errors import AgentError, exit_code_of
from at.errors import AtError


def describe(error: Exception) -> tuple[int, str, str, str] | None:
    """Return exit code, kind, message and what to try; None for what is a defect of ours."""
    if isinstance(error, AgentError | AtError):
        return exit_code_of(error), error.kind, str(error), error.hint
    if isinstance(error, OSError) and error.filename is not None:
        return 1, "file", f"{error.filename}: {error.strerror}", ""
    return None
