"""What a failed request means for its items: sent again later, fewer at once, or held apart."""

from __future__ import annotations

from enum import Enum

from agent import errors
from at.protocol.errors import AtError

_TRY_AGAIN = frozenset({408, 409, 411, 425, 429})


class FailureKind(Enum):
    """What a failed request means for its items."""

    LATER = "later"
    """Nothing to do with the items: the same request again after a wait."""
    AWAY = "away"
    """No answer, or 503: the service is away, unless that goes on for one request alone."""
    FAULT = "fault"
    """The service, or our own code, fails: on everything, or on an item of this request."""
    SMALLER = "smaller"
    """Too much at once: fewer items at a time."""
    REFUSED = "refused"
    """The service refuses the request: an item of it, or everything while it is wrong itself."""
    BLOCKED = "blocked"
    """Our credential or configuration is at fault: nothing can be sent until it is corrected."""


def classify_failure(error: Exception, count: int) -> FailureKind:
    """Return what `error` means for a request of `count` items.

    By its status alone: the bodies of refusals are a service's own, and a proxy's are another's.
    """
    if isinstance(error, errors.CredentialError | errors.UsageError):
        # A value of ours that breaks a rule is the item's fault.
        own_fault = isinstance(error, errors.UsageError) and error.kind == "usage"
        return FailureKind.REFUSED if own_fault else FailureKind.BLOCKED
    status = getattr(error, "status", None)
    if isinstance(error, errors.Conflict | errors.Untrusted | AtError) or status in _TRY_AGAIN:
        return FailureKind.LATER
    if isinstance(error, errors.Unavailable):
        if status is not None and status != 503:
            return FailureKind.FAULT
        return FailureKind.AWAY if error.sent else FailureKind.LATER
    if isinstance(error, errors.PayloadTooLarge) and count > 1:
        return FailureKind.SMALLER
    if isinstance(error, errors.ServiceRefusal):
        return FailureKind.REFUSED
    # Another answer than the service gives is a portal's or a proxy's on the way.
    return FailureKind.LATER if isinstance(error, errors.AgentError) else FailureKind.FAULT
