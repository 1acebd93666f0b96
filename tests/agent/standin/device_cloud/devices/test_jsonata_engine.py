"""The worker of transforms: expressions that never end are ended (clause D4.4)."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path

import httpx
import pytest

from agent.standin.device_cloud.devices import jsonata_engine
from tests.support.cloud.device_api import BLE, Api, device_path
from tests.support.cloud.standin import StandIn


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
    api: Api, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonata_engine, "LONG_S", 0.5)
    endless = asyncio.create_task(
        api.call("GET", device_path(BLE), params={"transform": expression})
    )
    for _ in range(5):
        assert (await api.call("GET", device_path(BLE))).status_code == 200
    assert (await endless).status_code in {200, 400}
    assert await api.get(device_path(BLE), transform="id") == BLE


ENDLESS = "($f := function($x) { $f($x + 1) }; $f(0))"


async def ask(standin: StandIn, expression: str) -> httpx.Response:
    return await standin.client.get(
        "/v1/devices", params={"transform": expression}, headers=standin.bearer("api_key")
    )


@pytest.mark.contract("D4.4")
async def test_a_good_expression_does_not_wait_for_those_that_never_end(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonata_engine, "LONG_S", 0.5)
    assert (await ask(standin, "id")).status_code == 200
    arrived, count = asyncio.Event(), itertools.count(1)
    standin.cloud.before_request.append(lambda: arrived.set() if next(count) == 8 else None)
    endless = [asyncio.create_task(ask(standin, f"{ENDLESS} + {n}")) for n in range(8)]
    await arrived.wait()
    assert (await ask(standin, "id")).status_code == 200
    assert sum(task.done() for task in endless) < 4
    answers = await asyncio.gather(*endless)
    assert {answer.status_code for answer in answers} <= {400, 429}
    assert (await ask(standin, "id")).status_code == 200


@pytest.mark.contract("D5.1")
async def test_who_waited_too_long_is_told_to_come_back(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonata_engine, "LONG_S", 0.8)
    monkeypatch.setattr(jsonata_engine, "TURN_S", 0.2)
    answers = await asyncio.gather(*(ask(standin, ENDLESS) for _ in range(5)))
    found = {answer.status_code: answer for answer in answers}
    assert found.keys() == {400, 429}
    assert found[429].headers["retry-after"] == "5"
    assert (await ask(standin, "id")).status_code == 200


async def test_an_expression_that_needs_more_than_its_first_turn_gets_its_whole_budget(
    standin: StandIn,
) -> None:
    # The first turn is not enough for it, and others wait with it for the second.
    endless = asyncio.create_task(ask(standin, ENDLESS))
    answer = await ask(standin, "$count([1..10000].($ * $))")
    assert answer.status_code == 200
    assert set(answer.json()["items"]) == {10000}
    assert (await endless).status_code == 400


def workers() -> list[int]:
    """Return the processes of this one that are workers."""
    lists = Path("/proc/self/task").glob("*/children")
    children = [pid for each in lists for pid in each.read_text().split()]
    return [
        int(pid)
        for pid in children
        if b"jsonata_worker" in Path("/proc", pid, "cmdline").read_bytes()
    ]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc: Linux has it")
async def test_there_are_no_more_workers_than_the_bound(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonata_engine, "LONG_S", 0.2)
    await asyncio.gather(*(ask(standin, ENDLESS) for _ in range(4)), ask(standin, "id"))
    assert 0 < len(workers()) <= jsonata_engine.SHORT_WORKERS + jsonata_engine.LONG_WORKERS


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc: Linux has it")
async def test_slow_expressions_give_way_to_first_turns(standin: StandIn) -> None:
    assert (await ask(standin, "id")).status_code == 200
    (first,) = workers()
    assert (await ask(standin, "$count([1..10000].($ * $))")).status_code == 200
    (slow,) = set(workers()) - {first}
    assert os.getpriority(os.PRIO_PROCESS, slow) > os.getpriority(os.PRIO_PROCESS, first)


@pytest.mark.contract("D4.2")
async def test_who_gives_up_while_the_engine_starts_leaves_the_next_one_its_own_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, exchange = asyncio.Event(), jsonata_engine._exchange

    async def noted(process: asyncio.subprocess.Process, request: bytes) -> jsonata_engine._Answer:
        asked.set()
        return await exchange(process, request)

    monkeypatch.setattr(jsonata_engine, "_exchange", noted)
    engine = jsonata_engine.Engine()
    impatient = asyncio.create_task(engine.evaluate("name", b'[{"name":"another"}]'))
    await asked.wait()  # the process is there, and the engine not yet loaded
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    assert await engine.evaluate("name", b'[{"name":"mine"}]') == [b'"mine"']
    await engine.close()
