"""The walk over the pages of a list; filters, and times in both directions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import AgentError, BadAnswer, UsageError
from agent.observability.api.paging import (
    Envelope,
    Paging,
    checked_time,
    filter_query,
    page_query,
    time_parameter,
    walk,
)
from agent.observability.api.resources import read_time


@pytest.mark.contract("O2.2")
@given(page=st.integers(-2, 3), per_page=st.integers(-1, 3) | st.integers(98, 102))
def test_pages_are_counted_from_one_and_have_one_to_a_hundred_items(
    page: int, per_page: int
) -> None:
    if page >= 1 and 1 <= per_page <= 100:
        assert page_query(page, per_page) == [("page", f"{page}"), ("per_page", f"{per_page}")]
    else:
        with pytest.raises(UsageError, match="page"):
            page_query(page, per_page)


@pytest.mark.contract("O2.1")
async def test_a_walk_ends_when_the_list_shrinks_and_says_when_it_gets_another_page() -> None:
    def page(number: int, data: list[Any], pages: int = 3) -> Envelope:
        return Envelope(data, Paging(len(data), 9, number, pages, 3))

    async def shrinking(number: int) -> Envelope:
        assert number < 3, "an empty page is the last, whatever is said of how many there are"
        return page(number, [{"n": number}] if number < 2 else [], pages=9)

    assert [item async for item in walk(shrinking)] == [{"n": 1}]

    async def stuck(number: int) -> Envelope:
        return page(1, [{"n": 1}])

    with pytest.raises(AgentError, match="asked for page 2, got page 1"):
        [item async for item in walk(stuck)]


@pytest.mark.contract("O2.3")
@pytest.mark.parametrize(
    "bad",
    [
        "2026-01-02",
        "2026-01-02T03:04:05+00:00",
        "",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "٢٠٢٦-01-02T03:04:05Z",
    ],
)
def test_a_time_that_the_service_would_refuse_is_not_sent(bad: str) -> None:
    with pytest.raises(UsageError, match="not a valid time"):
        checked_time(bad, "first_seen")
    for name in ("created_date", "first_seen", "began_at", "transitioned_at", "since", "until"):
        with pytest.raises(UsageError, match=f"^{name}: .* is not a valid time"):
            filter_query({name: bad})
    assert filter_query({"format": bad}) == [("format", bad)]


@pytest.mark.contract("O2.3")
@given(when=st.datetimes(timezones=st.timezones()))
def test_an_aware_time_goes_out_in_utc_and_comes_back(when: datetime) -> None:
    try:
        sent = time_parameter(when)
    except OverflowError:
        return
    assert checked_time(sent, "since") == sent
    assert read_time(sent) == when.astimezone(UTC).replace(microsecond=0)


@pytest.mark.contract("O2.3")
def test_a_naive_time_is_refused_both_ways() -> None:
    with pytest.raises(UsageError, match="without a time zone"):
        time_parameter(datetime(2026, 1, 2))  # noqa: DTZ001 - the point
    for naive in ("2026-01-02T03:04:05.123", "2026-01-02", None, 5, "soon"):
        with pytest.raises(BadAnswer):
            read_time(naive)
    assert read_time("2026-01-02T03:04:05.123456+02:00") == datetime(
        2026, 1, 2, 3, 4, 5, 123456, timezone(timedelta(hours=2))
    )


@pytest.mark.contract("O2.4")
def test_a_list_valued_filter_repeats_its_bare_name() -> None:
    query = filter_query({"cohort[]": ["a", "b"], "type": "trace", "ok": True, "n": 3})
    assert query == [
        ("cohort", "a"),
        ("cohort", "b"),
        ("type", "trace"),
        ("ok", "true"),
        ("n", "3"),
    ]
    with pytest.raises(UsageError):
        filter_query({"x": {"nested": 1}})
