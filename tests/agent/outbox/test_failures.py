"""What a failure means for the items of a request."""

from __future__ import annotations

import pytest

from agent.errors import (
    BadAnswer,
    Conflict,
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    ServerTrouble,
    UsageError,
)
from agent.outbox.failures import FailureKind, classify_failure


@pytest.mark.parametrize(
    ("error", "count", "verdict"),
    [
        (ServerTrouble("", status=503), 1, FailureKind.LATER),
        (Conflict("", status=409), 1, FailureKind.LATER),
        (InvalidRequest("", status=411), 1, FailureKind.LATER),
        (InvalidRequest("", status=400), 1, FailureKind.REFUSED),
        (InvalidRequest("", status=400), 2, FailureKind.SMALLER),
        (InvalidRequest("", status=415), 1, FailureKind.REFUSED),
        (PayloadTooLarge("", status=413), 9, FailureKind.SMALLER),
        (PayloadTooLarge("", status=413), 1, FailureKind.REFUSED),
        (Forbidden("", status=403), 5, FailureKind.BLOCKED),
        (UsageError("no slug"), 1, FailureKind.REFUSED),
        (BadAnswer("", status=302), 1, FailureKind.LATER),
    ],
)
def test_each_refusal_has_its_meaning(error, count, verdict):
    assert classify_failure(error, count) is verdict
