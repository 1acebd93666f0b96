"""Lists page in an envelope, filter and sort: clause O2."""

from __future__ import annotations

import json
import math
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.observability.resources.lists import FieldFilter, Listing
from tests.support.cloud.observability import an_event, error_of, push_events, with_token
from tests.support.cloud.standin import StandIn

LISTS = (
    "releases", "cohorts", "devices", "deployments", "events", "traces", "issues", "installs",
)  # fmt: skip
EVERY_LIST = (
    "/api/v0/organizations",
    "/api/v0/organizations/acme/projects",
    *(f"~/{name}" for name in (*LISTS, "coredumps", "files")),
)


@pytest.mark.contract("O2.1", "O2.2")
@pytest.mark.parametrize("path", EVERY_LIST)
async def test_every_list_pages_in_the_envelope(standin: StandIn, path: str) -> None:
    caller = with_token(standin)
    answer = (await caller("GET", path)).json()
    assert answer["paging"]["page"] == 1
    assert answer["paging"]["per_page"] == 20
    for query in ({"per_page": 101}, {"per_page": 0}, {"page": 0}, {"page": "x"}, {"page": ""},
                  {"per_page": "1.5"}, {"page": [1, 2]}):  # fmt: skip
        refused = await caller("GET", path, params=query)
        assert error_of(refused)["http_code"] == 400, query
    assert (await caller("GET", path, params={"per_page": 100})).status_code == 200


@pytest.mark.contract("O2.1", "O2.2", "O3.3")
async def test_the_pages_of_a_list_add_up(standin: StandIn) -> None:
    await push_events(standin, *(an_event(f"kit-{number}") for number in range(45)))
    caller = with_token(standin)
    seen = []
    for page, count in ((1, 20), (2, 20), (3, 5), (4, 0)):
        answer = (await caller("GET", "~/events", params={"page": page})).json()
        assert answer["paging"] == {
            "item_count": count, "total_count": 45, "page": page, "page_count": 3, "per_page": 20,
        }  # fmt: skip
        seen += [event["id"] for event in answer["data"]]
    assert len(set(seen)) == 45
    one = (await caller("GET", "~/events", params={"per_page": 100})).json()
    assert [event["id"] for event in one["data"]] == seen


@pytest.mark.contract("O2.3")
@pytest.mark.parametrize(
    ("path", "parameter"),
    [("~/events", "since"), ("~/devices", "created_date"), ("~/issues", "first_seen"),
     ("~/devices", "last_seen_since"), ("~/releases", "created_date")],
)  # fmt: skip
async def test_a_timestamp_parameter_ends_with_z(
    standin: StandIn, path: str, parameter: str
) -> None:
    caller = with_token(standin)
    for good in ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678Z"):
        assert (await caller("GET", path, params={parameter: good})).status_code == 200
    for bad in ("2026-01-02", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05", "yesterday",
                "2026-02-30T00:00:00Z", "2026-01-02 03:04:05Z", "2026-01-02t03:04:05Z", "",
                "1700000000"):  # fmt: skip
        refused = await caller("GET", path, params={parameter: bad})
        assert error_of(refused)["http_code"] == 400
        assert "Not a valid datetime" in refused.text, bad


@pytest.mark.contract("O2.2", "O2.3")
@pytest.mark.parametrize("parameter", ["created_date", "first_seen"])
async def test_every_list_takes_the_times_of_the_contract(standin: StandIn, parameter: str) -> None:
    caller = with_token(standin)
    for path in EVERY_LIST:
        ended = await caller("GET", path, params={parameter: "2999-01-02T03:04:05Z"})
        assert ended.status_code == 200, path
        assert ended.json()["paging"]["total_count"] == 0, path
        begun = await caller("GET", path, params={parameter: "2000-01-02T03:04:05Z"})
        everything = await caller("GET", path)
        assert begun.json() == everything.json(), path
        for bad in ("2020-01-01", "2026-01-02T03:04:05+00:00"):
            refused = await caller("GET", path, params={parameter: bad})
            assert (refused.status_code, path) == (400, path)
            assert "Not a valid datetime" in refused.text


@pytest.mark.contract("O2.3", "O2.4")
async def test_timestamps_filter(standin: StandIn) -> None:
    standin.clock.freeze()
    standin.clock.set(1_793_500_000)  # 2026-11-01T01:46:40Z
    await push_events(standin, an_event("early", captured_date="2026-10-31T10:00:00Z"))
    await push_events(standin, an_event("late", captured_date="2026-11-01T01:00:00+00:00"))
    caller = with_token(standin)
    for query, serials in (
        ({"since": "2026-11-01T00:00:00Z"}, ["late"]),
        ({"until": "2026-11-01T00:00:00Z"}, ["early"]),
        ({"since": "2027-01-01T00:00:00Z"}, []),
    ):
        found = await caller.data("~/events", **query)
        assert [event["device"]["device_serial"] for event in found] == serials


@pytest.mark.contract("O2.4")
async def test_a_list_valued_filter_repeats_its_name(standin: StandIn) -> None:
    caller = with_token(standin)
    for slug in ("alpha", "beta", "gamma"):
        assert (await caller("POST", "~/cohorts", json={"slug": slug})).status_code == 200
        device = {"device_serial": slug, "hardware_version": "r1", "cohort": slug}
        assert (await caller("POST", "~/devices", json=device)).status_code == 201
    found = await caller.data("~/devices", cohort=["alpha", "gamma"])
    assert {device["device_serial"] for device in found} == {"alpha", "gamma"}
    encoded = await caller("GET", "~/devices?cohort=%61lpha&cohort=b%65ta&sort=-device_serial")
    assert [device["device_serial"] for device in encoded.json()["data"]] == ["beta", "alpha"]


@pytest.mark.contract("O2.4")
async def test_sort_is_ascending_and_descending_with_a_minus(standin: StandIn) -> None:
    await push_events(standin, *(an_event(serial) for serial in ("b", "c", "a")))
    caller = with_token(standin)
    for sort, order in (("device_serial", "abc"), ("-device_serial", "cba")):
        found = await caller.data("~/devices", sort=sort)
        assert "".join(device["device_serial"] for device in found) == order
    assert error_of(await caller("GET", "~/devices", params={"sort": "colour"}))


@pytest.mark.contract("O2.4")
def test_of_several_fields_to_sort_by_the_first_counts_most() -> None:
    records = [{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 0, "b": 1}]
    sorts = {name: itemgetter(name) for name in "ab"}
    found = Listing(sorts=sorts).select(records, {"sort": ["a", "-b"]})
    assert found == [{"a": 0, "b": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2}]


@pytest.mark.contract("O2.1", "O2.4")
@given(
    values=st.lists(st.none() | st.integers(0, 5), max_size=8),
    page=st.integers(1, 4),
    per_page=st.integers(1, 4),
    descending=st.booleans(),
)
def test_a_page_is_a_slice_of_the_sorted_list(
    values: list[int | None], page: int, per_page: int, descending: bool
) -> None:
    records = [{"id": number, "value": value} for number, value in enumerate(values)]
    sorts = {"value": lambda record: record["value"]}
    query = {"page": page, "per_page": per_page, "sort": ["-value" if descending else "value"]}
    listing = Listing(sorts=sorts)
    found = listing.select(records, query)
    known = [record["value"] for record in found if record["value"] is not None]
    assert known == sorted(known, reverse=descending)
    assert sorted(record["id"] for record in found) == list(range(len(values)))
    body = json.loads(listing.list_response(records, query, lambda record: record["id"]).body)
    first = (page - 1) * per_page
    assert body["data"] == [record["id"] for record in found][first : first + per_page]
    assert body["paging"]["page_count"] == math.ceil(len(values) / per_page)


@pytest.mark.parametrize(
    ("kind", "value", "wanted", "passes"),
    [
        ("any", 5, ["4", "5"], True),
        ("any", 5, ["50"], False),
        ("since", 5.0, 5.0, True),
        ("since", 4.9, 5.0, False),
        ("until", 5.0, 5.0, True),
        ("until", 5.1, 5.0, False),
        ("since", None, 5.0, False),
        ("until", None, 5.0, False),
    ],
)
def test_a_filter_passes_values_and_both_ends_of_time(
    kind: str, value: object, wanted: object, passes: bool
) -> None:
    assert (
        FieldFilter(lambda record: record["value"], kind).admits({"value": value}, wanted) is passes
    )
