"""Pages of lists at the stand-in (clauses D4.1, D4.2)."""

from __future__ import annotations

import pytest

from tests.support.cloud.device_api import Api, device_path
from tests.support.cloud.standin import running_standin


async def walk(api: Api, **query) -> list:
    items, token = [], None
    while True:
        page = await api.get("/devices", **query, **({"pageNextToken": token} if token else {}))
        assert page["total"] <= int(query.get("pageLimit", 100))
        items += page["items"]
        token = page.get("pageNextToken")
        if not token:
            return items


@pytest.mark.contract("D4.1", "D4.2")
async def test_a_fleet_is_walked_page_by_page_each_device_once(tmp_path) -> None:
    async with running_standin(tmp_path, devices=1000) as standin:
        api = Api(standin)
        ids = [device["id"] for device in await walk(api, pageLimit=100)]
        assert len(ids) == len(set(ids)) == 1004
        assert await walk(api, pageLimit=100, transform="id") == ids
        assert await walk(api, pageLimit=100, pageSort="desc", transform="id") == ids[::-1]
        changed = ids[-1]
        renamed = await api.call("PUT", device_path(changed) + "/name", json="mine")
        assert renamed.status_code == 202
        gone = await api.call("DELETE", device_path(ids[-2]))
        assert gone.status_code == 202
        left = await walk(api, pageLimit=77)
        assert [device["id"] for device in left] == [*ids[:-2], changed]
        assert left[-1]["name"] == "mine"
        tagged = await api.get("/devices", tags="fleet", pageLimit=5)
        assert len(tagged["items"]) == 5


@pytest.mark.parametrize(
    "query",
    [
        {"pageLimit": "0"},
        {"pageLimit": "101"},
        {"pageLimit": "-1"},
        {"pageLimit": "x"},
        {"pageNextToken": "%%%"},
        {"pageNextToken": "AAAA"},
        {"pageSort": "up"},
        {"includeState": "maybe"},
    ],
)
async def test_wrong_paging_is_refused(api: Api, query: dict[str, str]) -> None:
    answer = await api.call("GET", "/devices", params=query)
    assert answer.status_code in {400, 422}


async def test_a_status_is_that_of_the_parameter_that_it_names(api: Api) -> None:
    answer = await api.call("GET", "/devices", params={"pageNextToken": "%%%", "pageSort": "up"})
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("pageSort: ")
    answer = await api.call("GET", "/devices", params={"pageNextToken": "%%%"})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("pageNextToken: ")
