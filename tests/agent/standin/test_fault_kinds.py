"""What a client sees of each kind of fault, on a real socket."""

from __future__ import annotations

import asyncio
from email.utils import parsedate_to_datetime

import httpx
import pytest
from observability import an_event, with_project_key, with_token
from standin import StandIn

from agent.standin.faults import set_faults

PLACE = "/api/v0/organizations"


async def get(standin: StandIn, path: str = PLACE) -> httpx.Response:
    return await with_token(standin)("GET", path)


@pytest.mark.parametrize(
    ("form", "header"),
    [("", "1"), ("=7", "7"), ("=none", None), ("=-5", "-5"), ("=tomorrow", "tomorrow"),
     ("=" + "9" * 40, "9" * 40)],
)  # fmt: skip
async def test_every_form_of_retry_after(standin: StandIn, form: str, header: str | None) -> None:
    set_faults(standin.cloud, [f"too-many-requests{form}*1"])
    answer = await get(standin)
    assert (answer.status_code, answer.headers.get("Retry-After")) == (429, header)
    assert (await get(standin)).status_code == 200


async def test_retry_after_may_be_a_date_of_the_stand_in_s_clock(standin: StandIn) -> None:
    standin.clock.freeze()
    set_faults(standin.cloud, ["too-many-requests=date:90"])
    until = parsedate_to_datetime((await get(standin)).headers["Retry-After"])
    assert 88 < (until - standin.clock.now()).total_seconds() <= 90


async def test_pages_arrays_and_redirects(standin: StandIn) -> None:
    set_faults(standin.cloud, ["html-error*1"])
    page = await get(standin)
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html; charset=utf-8")
    set_faults(standin.cloud, ["array-error=422*1"])
    assert isinstance((await get(standin)).json(), list)
    set_faults(standin.cloud, ["redirect=https://elsewhere.invalid/base/*1"])
    moved = await get(standin, PLACE + "?page=1")
    assert moved.status_code == 307
    assert moved.headers["Location"] == f"https://elsewhere.invalid/base{PLACE}?page=1"


async def test_deep_and_huge_json(standin: StandIn) -> None:
    set_faults(standin.cloud, ["deep-json=5000*1"])
    assert (await get(standin)).text == "[" * 5000 + "]" * 5000
    set_faults(standin.cloud, ["huge-json=3*1"])
    assert len((await get(standin)).content) > 3 * 1024 * 1024


@pytest.mark.parametrize("fault", ["cut-body", "wrong-length=10"])
async def test_a_body_that_ends_early_is_seen_by_the_client(standin: StandIn, fault: str) -> None:
    set_faults(standin.cloud, [fault + "*1"])
    with pytest.raises(httpx.RemoteProtocolError):
        await get(standin)
    assert (await get(standin)).status_code == 200


async def test_a_length_that_is_too_small_cuts_the_body(standin: StandIn) -> None:
    set_faults(standin.cloud, ["wrong-length=-5*1"])
    whole = await get(standin, f"{PLACE}/acme")
    assert whole.content == (await get(standin, f"{PLACE}/acme")).content[:-5]


async def test_a_slow_body_comes_whole_and_latency_delays(standin: StandIn) -> None:
    set_faults(standin.cloud, ["slow-body=0.1*1", "latency=0.01*1"])
    assert (await get(standin)).json()["paging"]["page"] == 1
    assert (await get(standin)).status_code == 200


@pytest.mark.parametrize(("moment", "stored"), [("before", 0), ("after", 1)])
async def test_a_reset_comes_before_or_after_the_request_was_carried_out(
    standin: StandIn, moment: str, stored: int
) -> None:
    set_faults(standin.cloud, [f"connection-reset={moment}*1@/api/v0/events"])
    device = with_project_key(standin)
    with pytest.raises(httpx.ReadError):
        await device("POST", "/api/v0/events", json=[an_event()])
    assert len(await with_token(standin).data("~/events")) == stored
    assert (await device("POST", "/api/v0/events", json=[an_event()])).status_code == 202


async def test_spoiled_answers_leave_nothing_behind(standin: StandIn) -> None:
    before = len(asyncio.all_tasks())
    for fault in ("cut-body", "connection-reset", "wrong-length=3"):
        set_faults(standin.cloud, [fault])
        for _ in range(20):
            with pytest.raises(httpx.TransportError):
                await get(standin)
    set_faults(standin.cloud, [])
    assert (await get(standin)).status_code == 200
    assert len(asyncio.all_tasks()) <= before + 2
