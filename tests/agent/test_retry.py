from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import (
    BadAnswer,
    DeadlineExceeded,
    RateLimited,
    ServerTrouble,
    ServiceRefusal,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from agent.retry import (
    LONGEST_RETRY_AFTER_S,
    RetryPolicy,
    asked_wait,
    retry_after,
    wait_before_retry,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("1.5", 1.5),
        (" 7 ", 7.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Friday, 02-Jan-26 03:05:05 GMT", 60.0),
        ("Fri Jan  2 03:05:05 2026", 60.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
        ("Fri, 02 Jan 2099 03:00:00 GMT", LONGEST_RETRY_AFTER_S),
        ("99999999999999999999", LONGEST_RETRY_AFTER_S),
        ("9" * 5000, LONGEST_RETRY_AFTER_S),
        ("-5", None),
        ("", None),
        ("soon", None),
        ("1e3", None),
        ("nan", None),
        ("٣", None),
        ("Fri, 99 Jan 2026 03:05:05 GMT", None),
        ("0x10", None),
    ],
)
def test_every_form_of_retry_after_is_read_and_a_garbled_one_is_none(
    text: str, expected: float | None
) -> None:
    assert retry_after({"retry-after": text}, NOW) == expected


def test_without_the_header_nothing_was_asked() -> None:
    assert retry_after({}, NOW) is None


def test_a_date_is_measured_by_the_clock_of_who_wrote_it() -> None:
    headers = {
        "date": "Fri, 02 Jan 2026 01:00:00 GMT",
        "retry-after": "Fri, 02 Jan 2026 01:00:30 GMT",
    }
    assert retry_after(headers, NOW) == 30.0


@given(text=st.text(max_size=60))
def test_whatever_stands_there_the_answer_is_bounded(text: str) -> None:
    asked = retry_after({"retry-after": text, "date": text}, NOW)
    assert asked is None or 0 <= asked <= LONGEST_RETRY_AFTER_S


@given(
    asked=st.none() | st.floats(0, LONGEST_RETRY_AFTER_S),
    attempt=st.integers(1, 50),
    jitter=st.floats(0, 1),
    status=st.sampled_from([None, 408, 425, 429, 500, 502, 503, 504]),
)
def test_the_wait_is_never_shorter_than_asked_and_never_endless(
    asked: float | None, attempt: int, jitter: float, status: int | None
) -> None:
    policy = RetryPolicy(attempts=99)
    error = ServerTrouble("x", status=status, retry_after_s=asked)
    wait = wait_before_retry(error, attempt, policy, repeatable=True, jitter=jitter)
    if asked is not None and asked > policy.longest_s:
        assert wait is None
    else:
        assert wait is not None
        assert (asked or 0) <= wait <= policy.longest_s * 1.25


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0, 300), st.floats(0, 300), st.floats(0, 1))
def test_no_try_starts_after_the_last_or_later_than_the_whole_time(
    attempts: int, attempt: int, total_s: float, elapsed_s: float, jitter: float
) -> None:
    policy = RetryPolicy(attempts=attempts, total_s=total_s)
    wait = wait_before_retry(
        Unreachable("x"), attempt, policy, repeatable=True, jitter=jitter, elapsed_s=elapsed_s
    )
    if attempt >= attempts:
        assert wait is None
    elif wait is not None:
        assert elapsed_s + wait <= total_s
    else:
        assert elapsed_s + policy.longest_s * 1.25 > total_s


def test_waits_double() -> None:
    waits = [
        wait_before_retry(Unreachable("x"), n, RetryPolicy(attempts=99), repeatable=True, jitter=0)
        for n in range(1, 8)
    ]
    assert waits == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RateLimited("x", status=429, retry_after_s=600.0), "wait 600 s, until "),
        (RateLimited("x", status=429, retry_after_s=3600.0), "wait 3600 s or longer, until "),
        (RateLimited("x", status=429), ""),
        (RateLimited("x", status=429, retry_after_s=0.0), ""),
        (ServiceRefusal("x", status=400), ""),
    ],
)
def test_the_wait_that_a_service_asks_for_is_told_with_its_end(error: Exception, says: str) -> None:
    told = asked_wait(error, NOW)
    assert says in told
    assert bool(told) == bool(says)
    if isinstance(error, RateLimited) and error.retry_after_s:
        until = (NOW + timedelta(seconds=error.retry_after_s)).astimezone()
        assert told.endswith(f"{until:%H:%M:%S %Z}")


@pytest.mark.parametrize(
    ("error", "repeatable", "again"),
    [
        (Unreachable("x", sent=False), False, True),
        (Unreachable("x", sent=True), False, False),
        (Untrusted("x", sent=False), True, False),
        (Unreachable("x", sent=True), True, True),
        (DeadlineExceeded("x"), False, False),
        (DeadlineExceeded("x"), True, True),
        (RateLimited("x", status=429), False, True),
        (ServerTrouble("x", status=503), False, True),
        (ServerTrouble("x", status=529), False, True),
        (ServerTrouble("x", status=500), False, False),
        (ServerTrouble("x", status=501), True, False),
        (ServerTrouble("x", status=599), True, False),
        (Unauthorized("x", status=401), True, False),
        (BadAnswer("x"), True, False),
        (ValueError("x"), True, False),
    ],
)
def test_what_may_be_sent_again(error: Exception, repeatable: bool, again: bool) -> None:
    wait = wait_before_retry(error, 1, RetryPolicy(), repeatable=repeatable, jitter=0.5)
    assert (wait is not None) is again


def test_the_bound_on_what_is_asked_leaves_an_hour() -> None:
    assert timedelta(seconds=LONGEST_RETRY_AFTER_S) == timedelta(hours=1)
