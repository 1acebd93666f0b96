"""From an exception to an exit code, a kind, a message and a hint."""

from __future__ import annotations

from agent.errors import AgentError, exit_code_of
from at.protocol.errors import AtError, PortBusy


def describe(error: Exception) -> tuple[int, str, str, str] | None:
    """Return exit code, kind, message and hint; None for an exception that is a defect of ours."""
    if isinstance(error, AgentError | AtError):
        hint = _hold_hint() if isinstance(error, PortBusy) else ""
        return exit_code_of(error), error.kind, str(error), hint or error.hint
    if isinstance(error, OSError) and error.filename is not None:
        return 1, "file", f"{error.filename}: {error.strerror}", ""
    return None


def _hold_hint() -> str:
    """Return the hint for a port that the running agent may hold, "" where none runs."""
    from agent.config.paths import state_dir
    from agent.daemon.control.socket import control_sockets

    if not any(control_sockets(state_dir())):
        return ""
    return (
        "if `cellagent run` has it: try again, or `cellagent hold -- COMMAND` lets COMMAND have it"
    )
