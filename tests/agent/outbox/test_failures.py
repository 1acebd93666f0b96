"""What a failure means for the items of a request."""

from __future__ import annotations

import pytest

from agent.errors import (
    BadAnswer,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    ServerTrouble,
    Unreachable,
    Untrusted,
    UsageError,
)
from agent.outbox.failures import FailureKind, classify_failure
from at.protocol.errors import LinkLost


@pytest.mark.parametrize(
    ("error", "count", "verdict"),
    [
        (ServerTrouble("", status=500), 1, FailureKind.FAULT),
        (ServerTrouble("", status=502), 9, FailureKind.FAULT),
        (ServerTrouble("", status=503), 1, FailureKind.AWAY),
        (Unreachable("reset"), 1, FailureKind.AWAY),
        (DeadlineExceeded("no whole answer"), 1, FailureKind.AWAY),
        (Unreachable("no such name", sent=False), 1, FailureKind.LATER),
        (Untrusted("another certificate"), 1, FailureKind.LATER),
        (RateLimited("", status=429), 1, FailureKind.LATER),
        (LinkLost("the modem makes no token"), 1, FailureKind.LATER),
        (Conflict("", status=409), 1, FailureKind.LATER),
        (InvalidRequest("", status=411), 1, FailureKind.LATER),
        (InvalidRequest("", status=400), 1, FailureKind.REFUSED),
        (InvalidRequest("", status=400), 2, FailureKind.REFUSED),
        (InvalidRequest("", status=415), 1, FailureKind.REFUSED),
        (NotFound("", status=404), 1, FailureKind.REFUSED),
        (PayloadTooLarge("", status=413), 9, FailureKind.SMALLER),
        (PayloadTooLarge("", status=413), 1, FailureKind.REFUSED),
        (Forbidden("", status=403), 5, FailureKind.BLOCKED),
        (UsageError("no slug"), 1, FailureKind.REFUSED),
        (BadAnswer("", status=302), 1, FailureKind.LATER),
        (ZeroDivisionError("a defect"), 1, FailureKind.FAULT),
    ],
)
def test_each_refusal_has_its_meaning(error, count, verdict):
    assert classify_failure(error, count) is verdict
