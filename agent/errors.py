"""The errors of the agent, sorted by what the caller can do; each carries its exit code.

AgentError                  1  it failed
├── UsageError              2  the call is wrong, or an extra is not installed
├── RefusedByRule           4  the firmware gate, verification, or "would overwrite"
├── CredentialError         5  401, 403, a missing, wrong or expired credential
└── Unavailable             6  the service cannot be reached, or says "later"
"""

from __future__ import annotations

from typing import ClassVar


class AgentError(Exception):
    """Base of every error of this package. `hint` says what to try, "" where nothing helps."""

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "failed"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(AgentError):
    """The call is wrong: an option, a configuration key, a missing extra."""

    exit_code = 2
    kind = "usage"


class RefusedByRule(AgentError):
    """A rule of ours forbids it: the firmware gate, verification, or it would overwrite."""

    exit_code = 4
    kind = "refused"


class CredentialError(AgentError):
    """A credential is missing, of the wrong kind, expired or refused (401, 403)."""

    exit_code = 5
    kind = "credentials"


class Unavailable(AgentError):
    """The service cannot be reached, or asks for a later try (429, 5xx, time-out, DNS)."""

    exit_code = 6
    kind = "unavailable"
