"""The processing log pages by cursor and filters."""

from __future__ import annotations

from tests.support.cloud.observability import push_chunk, with_token
from tests.support.cloud.standin import StandIn


async def test_the_processing_log_pages_by_cursor_and_filters(standin: StandIn) -> None:
    for _ in range(3):
        await push_chunk(standin, b"\xff", "kit-1")
    await push_chunk(standin, b"\xff", "kit-2")
    caller = with_token(standin)
    first = (await caller("GET", "~/processing-log", params={"page[size]": 2})).json()
    rest = (await standin.client.get(first["links"]["next"], headers=caller.headers)).json()
    assert [line["id"] for line in first["data"] + rest["data"]] == [1, 2, 3, 4]
    assert rest["links"]["next"] is None
    only = (await caller("GET", "~/processing-log", params={"device_serial": "kit-2"})).json()
    assert len(only["data"]) == 1
