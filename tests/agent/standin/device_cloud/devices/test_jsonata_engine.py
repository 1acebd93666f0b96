"""The worker of transforms: expressions that never end are ended (clause D4.4)."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from device_api import BLE, Api, device_path
from standin import StandIn

from agent.standin.device_cloud.devices import jsonata_engine


@pytest.mark.contract("D4.4")
@pytest.mark.parametrize(
    "expression",
    [
        "$sum([0..9999999])",
        '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /(a+)+$/)',
        '$pad("x", 500000000)',
        "(" * 1500 + "1" + ")" * 1500,
    ],
    ids=["long sum", "regex", "huge", "deep"],
)
async def test_an_expression_that_never_ends_is_ended_and_others_are_answered_meanwhile(
    api: Api, expression: str
) -> None:
    endless = asyncio.create_task(
        api.call("GET", device_path(BLE), params={"transform": expression})
    )
    for _ in range(5):
        assert (await api.call("GET", device_path(BLE))).status_code == 200
    assert (await endless).status_code in {200, 400}
    assert await api.get(device_path(BLE), transform="id") == BLE


async def test_expressions_that_never_end_do_not_make_others_wait_for_ever(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonata_engine, "DEADLINE_S", 0.5)
    monkeypatch.setattr(jsonata_engine, "TURN_S", 1.0)

    async def ask(expression: str) -> httpx.Response:
        return await standin.client.get(
            "/v1/devices", params={"transform": expression}, headers=standin.bearer("api_key")
        )

    assert (await ask("id")).status_code == 200
    endless = "($f := function($x) { $f($x + 1) }; $f(0))"
    asked = await asyncio.gather(*(ask(endless) for _ in range(12)), ask("id"))
    assert {answer.status_code for answer in asked[:-1]} == {400, 429}
    assert (asked[-1].status_code, asked[-1].headers["retry-after"]) == (429, "5")
    assert (await ask("id")).status_code == 200
