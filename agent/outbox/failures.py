"""What a failed request means for its items: sent again later, fewer at once, or given up."""

from __future__ import annotations

from enum import Enum

from agent import errors

_TRY_AGAIN = frozenset({408, 409, 411, 425, 429})


class FailureKind(Enum):
    """What a failed request means for its items."""

    LATER = "later"
    """The service or the network is at fault: the same request again after a wait."""
    SMALLER = "smaller"
    """Too much at once, or one bad item among several: fewer at a time, to find it."""
    REFUSED = "refused"
    """This one item, for good: counted, and parked when it is counted often enough."""
    BLOCKED = "blocked"
    """Our credential or configuration is at fault: nothing can be sent until it is corrected."""


def classify_failure(error: Exception, count: int) -> FailureKind:
    """Return what `error` means for a request of `count` items."""
    if isinstance(error, errors.CredentialError | errors.UsageError):
        # A value of ours that breaks a rule is the item's fault, if it is alone.
        own_fault = isinstance(error, errors.UsageError) and error.kind == "usage"
        if not own_fault:
            return FailureKind.BLOCKED
        return FailureKind.REFUSED if count == 1 else FailureKind.SMALLER
    if isinstance(error, errors.Unavailable):
        return FailureKind.LATER
    if isinstance(error, errors.Conflict) or getattr(error, "status", None) in _TRY_AGAIN:
        return FailureKind.LATER
    if isinstance(error, errors.PayloadTooLarge | errors.ServiceRefusal):
        return FailureKind.REFUSED if count == 1 else FailureKind.SMALLER
    # Another answer than the service gives: a portal or a proxy on the way.
    return FailureKind.LATER
