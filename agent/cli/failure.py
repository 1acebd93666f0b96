"""From an exception to an exit code, a kind, a message and what to try."""

from __future__ import annotations

from agent.errors import AgentError
from at import errors as at

_MODEM_AWAY = (
    at.PortError,
    at.LinkLost,
    at.NoAnswer,
    at.CommandTimeout,
    at.ModemReset,
)


def describe(error: Exception) -> tuple[int, str, str, str] | None:
    """Return exit code, kind, message and what to try; None for what is a defect of ours."""
    if isinstance(error, AgentError):
        return error.exit_code, error.kind, str(error), error.hint
    if isinstance(error, at.AtError):
        return _exit_code(error), error.kind, str(error), error.hint
    if isinstance(error, OSError) and error.filename is not None:
        return 1, "file", f"{error.filename}: {error.strerror}", ""
    return None


def _exit_code(error: at.AtError) -> int:
    if isinstance(error, _MODEM_AWAY):
        return 3
    if isinstance(error, at.FirmwareRefused):
        return 4
    if isinstance(error, at.UnsafeArgument):
        return 2
    return 1
