"""The errors of the agent, sorted by what the caller can do; each carries its exit code.

The exit codes of commands stand in this tree and in `exit_code_of`, which also maps the errors of
`at`; nowhere else. Two are not ours to choose: 128 + N for a command that signal N ended, and the
code of a program that a command runs.

AgentError                  1  it failed
├── UsageError              2  the call is wrong, or an extra is not installed
│   └── ConfigError            a profile or secrets file cannot be used as it is
│       └── NotConfigured         something has to be set first: waiting is in vain
├── ResourceUnavailable     3  on this host: held by another process, not running, not plugged in
├── RefusedByRule           4  the firmware gate, verification, or "would overwrite"
├── CredentialError         5  401, 403, a missing, wrong or expired credential
│   ├── CredentialMissing      none of the kinds that the call takes is configured
│   ├── WrongCredential        the kind that was asked for is not one that the call takes
│   ├── Unauthorized           401: the service did not accept it
│   └── Forbidden              403: it was accepted and may not do this
├── ServiceRefusal          1  the service answered, and the same request will not do better
│   ├── NotFound               404, 410
│   ├── Conflict               409
│   ├── PreconditionFailed     412: read it again, then change it
│   ├── PayloadTooLarge        413: send less at once
│   └── InvalidRequest         400, 405, 415, 422 and every other 4xx
├── BadAnswer               1  the answer is not what it must be: its form, its size, a redirect
│   └── EmptyAnswer            it has no body, which would tell whose it is
└── Unavailable             6  the service cannot be reached, or says "later"
    ├── Unreachable            DNS, connection, TLS, or the link broke
    │   ├── NothingListens        refused, or there is no such host: waiting is in vain
    │   └── Untrusted             no TLS, or a certificate that does not verify: waiting is in vain
    ├── DeadlineExceeded       no whole answer within the time given
    ├── RateLimited            429
    └── ServerTrouble          5xx
"""

from typing import ClassVar

from at.protocol import errors as at


class AgentError(Exception):
    """Base of every error of this package. `hint` says what to try, "" where nothing helps.

    `status` is the HTTP status and `code` the service's own number, None where there is none.
    """

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "failed"
    usual_hint: ClassVar[str] = ""
    """What to try where `hint` says nothing."""

    def __init__(
        self, message: str, *, hint: str = "", status: int | None = None, code: int | None = None
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status
        self.code = code


class UsageError(AgentError):
    """The call is wrong: an option, a configuration key, a missing extra."""

    exit_code = 2
    kind = "usage"


class ConfigError(UsageError):
    """A profile or a secrets file cannot be used as it is; the message names file and key."""

    kind = "config"


class NotConfigured(ConfigError):
    """What is asked for has to be set in the profile first: to try again is of no use."""


class ResourceUnavailable(AgentError):
    """Something on this host is held by another process, or not there: the agent, a kit, its jobs.

    The errors of `at` about a port, a link or a modem that does not answer have the same code.
    """

    exit_code = 3


class RefusedByRule(AgentError):
    """A rule of ours forbids it: the firmware gate, verification, or it would overwrite."""

    exit_code = 4
    kind = "refused"


class CredentialError(AgentError):
    """A credential is missing, of the wrong kind, expired or refused (401, 403)."""

    exit_code = 5
    kind = "credentials"


class CredentialMissing(CredentialError):
    """None of the kinds of credential that the call takes is configured."""


class WrongCredential(CredentialError):
    """The kind of credential that was asked for is not one that the call takes: nothing sent."""


class Unauthorized(CredentialError):
    """401: the service did not accept the credential."""


class Forbidden(CredentialError):
    """403: the credential was accepted and may not do this."""


class ServiceRefusal(AgentError):
    """The service answered 4xx: the same request will not do better."""

    kind = "service"


NOTHING_FOUND = 40499
"""The device cloud's own number of a 404 that is no error: there is nothing to return."""


class NotFound(ServiceRefusal):
    """404 or 410: there is no such thing, or no such path."""

    kind = "not-found"


class Conflict(ServiceRefusal):
    """409: it is there already, or in a state that does not allow this."""

    kind = "conflict"


class PreconditionFailed(ServiceRefusal):
    """412: somebody changed it since it was read; read it again, then change it."""

    kind = "precondition-failed"


class PayloadTooLarge(ServiceRefusal):
    """413: send less at once."""

    kind = "too-large"


class InvalidRequest(ServiceRefusal):
    """400, 405, 415, 422 and every other 4xx: the request itself is at fault."""

    kind = "invalid-request"


class BadAnswer(AgentError):
    """The answer is not what it must be: no JSON, too large, another shape, a redirect."""

    kind = "bad-answer"
    usual_hint = "`cellagent doctor` checks the way to the service"


class EmptyAnswer(BadAnswer):
    """The answer has no body, which would tell whose it is: the service's, or a proxy's."""


class Unavailable(AgentError):
    """The service cannot be reached, or asks for a later try (429, 5xx, time-out, DNS).

    `retry_after_s` is the time it asked for, None where it did not say; `sent` is False where
    it is certain that the request never reached the service.
    """

    exit_code = 6
    kind = "unavailable"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        code: int | None = None,
        retry_after_s: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, hint=hint, status=status, code=code)
        self.retry_after_s = retry_after_s
        self.sent = sent


class Unreachable(Unavailable):
    """DNS, connection or TLS failed, or the link broke while it was used."""

    kind = "unreachable"


class NothingListens(Unreachable):
    """The host, or the proxy, refused the connection, or there is none of that name."""


class Untrusted(Unreachable):
    """The certificate of the service does not verify, or it speaks no TLS; nothing was sent."""

    kind = "untrusted"


class DeadlineExceeded(Unavailable):
    """No whole answer came within the time given."""

    kind = "timeout"


class RateLimited(Unavailable):
    """429: the service wants fewer requests."""

    kind = "rate-limited"


class ServerTrouble(Unavailable):
    """5xx: the fault is the service's own."""


def with_hint(text: str, hint: str | None) -> str:
    """Return a sentence with what to try behind it, if there is something."""
    return f"{text}; try: {hint}" if hint else text


def exit_code_of(error: Exception) -> int:
    """Return the exit code of a command that ended with `error`, one of ours or of `at`."""
    if isinstance(error, AgentError):
        return error.exit_code
    away = (at.PortError, at.LinkLost, at.NoAnswer, at.CommandTimeout, at.ModemReset)
    if isinstance(error, away):
        return ResourceUnavailable.exit_code
    if isinstance(error, at.FirmwareRefused):
        return RefusedByRule.exit_code
    if isinstance(error, at.UnsafeArgument):
        return UsageError.exit_code
    return AgentError.exit_code
