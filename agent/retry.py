"""When a call is sent again, and how long to wait before that or a next round. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from msgspec import Struct

from agent.errors import NothingListens, Unavailable, Untrusted

LONGEST_RETRY_AFTER_S = 3600.0
"""The longest wait that a service may ask for: a garbled date must not silence the agent."""
RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""408 and 425 ask for another try; 529 is a service's own word for "overloaded".

The others are what the vendor's own clients repeat.
"""

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
NOT_TAKEN_STATUSES = frozenset({425, 429, 503, 529})
"""The service says itself that it did not take the request: safe even for what may not repeat."""


class RetryPolicy(Struct, frozen=True):
    """How often and how long a call is tried before its error is raised."""

    attempts: int = 4
    first_s: float = 1.0
    """The wait after the first failure; it doubles with each."""
    longest_s: float = 30.0
    """The longest wait; a service that asks for more is left to the caller."""
    total_s: float = 120.0
    """No try starts later than this after the first."""


DEFAULT_RETRIES = RetryPolicy()
NO_RETRY = RetryPolicy(attempts=1)
"""For callers that keep the request themselves and come back later (the outbox)."""


def backoff_s(
    failures: int, *, first_s: float, longest_s: float, jitter: float = 0.0, at_least_s: float = 0.0
) -> float:
    """Return the seconds to wait after the n-th failure in a row: they double up to `longest_s`.

    `at_least_s` is what the service asked for. `jitter`, in 0..1, lengthens the wait by up to a
    quarter, so that many clients do not come back at the same moment.
    """
    doubled = first_s * 2.0 ** min(failures - 1, 20)  # a larger exponent would overflow in the end
    return max(min(doubled, longest_s), at_least_s) * (1 + jitter / 4)


def spread_s(interval_s: float, jitter: float) -> float:
    """Return the seconds to add to an interval, up to a tenth of it, so that a fleet spreads.

    `jitter` is in 0..1.
    """
    return 0.1 * interval_s * jitter


def wait_asked_s(error: BaseException) -> float:
    """Return for how many seconds the service asked to be left alone, 0 where it did not."""
    return (isinstance(error, Unavailable) and error.retry_after_s) or 0.0


def wait_before_retry(
    error: Exception,
    attempt: int,
    policy: RetryPolicy,
    *,
    repeatable: bool,
    jitter: float,
    elapsed_s: float = 0.0,
) -> float | None:
    """Return the seconds to wait before try `attempt` + 1; None where it must not be repeated.

    `jitter` is in 0..1 and only ever lengthens the wait, by up to a quarter. `elapsed_s` is the
    time since the first try began.
    """
    if attempt >= policy.attempts:
        return None
    if not isinstance(error, Unavailable) or isinstance(error, Untrusted | NothingListens):
        return None
    if error.status is not None and error.status not in RETRIED_STATUSES:
        return None
    if not repeatable and error.sent and error.status not in NOT_TAKEN_STATUSES:
        return None
    asked = wait_asked_s(error)
    if asked > policy.longest_s:
        return None
    wait_s = backoff_s(
        attempt, first_s=policy.first_s, longest_s=policy.longest_s, jitter=jitter, at_least_s=asked
    )
    return wait_s if elapsed_s + wait_s <= policy.total_s else None


def asked_wait(error: Exception, now: datetime) -> str:
    """Return for how long, and until when, the service asked to wait; "" where it did not.

    `now` is this host's time, aware, at which the error came.
    """
    if not isinstance(error, Unavailable) or not error.retry_after_s:
        return ""
    until = (now + timedelta(seconds=error.retry_after_s)).astimezone()
    # What it asks for beyond the longest wait is not known here.
    longer = " or longer" if error.retry_after_s >= LONGEST_RETRY_AFTER_S else ""
    return (
        f"the service asks to wait {error.retry_after_s:.0f} s{longer}, until {until:%H:%M:%S %Z}"
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return what `retry-after` asks for in seconds, 0..3600; None if absent or garbled.

    A date is measured against the service's own `date` header where there is one, so that a
    wrong clock on either side does not matter; else against `now` (aware).
    """
    text = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(text):
        # A number of many digits is cut before it is parsed: int() and float() bound theirs.
        return min(float(text[:16]), LONGEST_RETRY_AFTER_S)
    when = http_date(text)
    if when is None:
        return None
    wait = (when - (http_date(headers.get("date", "")) or now)).total_seconds()
    return min(max(wait, 0.0), LONGEST_RETRY_AFTER_S)


def check_available(
    message: str,
    status: int,
    headers: Mapping[str, str],
    now: datetime,
    error_type: type[Unavailable] = Unavailable,
) -> None:
    """Raise `error_type` for a status that asks for another try, with the wait it asks for."""
    if status in RETRIED_STATUSES:
        raise error_type(message, status=status, retry_after_s=retry_after(headers, now))


def http_date(text: str) -> datetime | None:
    """Return an HTTP date (any of the three forms of RFC 9110 clause 5.6.7), None if it is none."""
    try:
        when = parsedate_to_datetime(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
