"""The bench on the page: the tray as it lies, who needs a hand, sound, the ledger, and acts."""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from agent.page import bench_feed
from agent.page.bench import bench_view
from agent.page.bench_feed import LedgerFeed, Records, RunningBench
from agent.page.report import numbers, report_view, runs_csv
from agent.page.server import ServedPage
from agent.page.view import Painted, View
from agent.provisioning.ledger import Ledger, RunRecord
from agent.provisioning.report import Counts, Failures, Report, Times
from agent.provisioning.running.tray import SlotState
from tests.support.page.page_agent import page_of
from tests.support.page.page_bench import (
    BUSY,
    FAILED,
    REFUSED,
    bench_of,
    end,
    ledger_in,
    morning,
    place,
    plug,
    record,
)

NOW = datetime(2026, 11, 22, 6, 10, 2, tzinfo=UTC)
HOSTILE = "=cmd()<script>document.title='owned'</script>\x1b[31m"
ENDED = {name: value for name, value in FAILED.items() if name != "hint"}


def shown(running: RunningBench | None, *, control: bool = False) -> View:
    return bench_view(running, None, NOW, Painted(), control=control)


async def records_of(folder: Path, period: str = "today") -> Records:
    """Return what the feed has read of a ledger."""
    read = asyncio.Event()
    now = NOW + timedelta(microseconds=1)
    feed = LedgerFeed(partial(ledger_in, folder, writes=False), read.set, lambda: now)
    assert feed.records(period) is None
    reading = asyncio.ensure_future(feed.run())
    await asyncio.wait_for(read.wait(), 60)
    reading.cancel()
    found = feed.records(period)
    assert found is not None
    return found


def test_the_tray_lies_as_the_profile_says_and_each_slot_has_shape_word_and_reason() -> None:
    view = shown(morning())
    assert [len(view.lists[f"floor/tray/row-{row}"]) for row in range(4)] == [4] * 4
    assert view.headline == "3 of 16 slots need a hand"
    failed = view.parts["slot-1-2.2"]
    for words in ("B2", "FAIL", "#i-bad", "refused at gate · 4.2 s", "old firmware"):
        assert words in failed
    assert "11 of 17" in view.parts["slot-1-3.2"]
    assert "EMPTY" in view.parts["slot-1-4.4"]
    hands = view.parts["hands"]
    assert hands.index("B2") < hands.index("C4") < hands.index("D1"), "failures first"
    assert "is older than 1.3.0" in hands
    assert "cellagent run --print-udev</code>" in hands


def test_without_a_layout_the_slots_lie_by_their_place_and_rows_are_equally_wide() -> None:
    running = bench_of(1, 5)
    running.bench.tray.layout = None
    view = shown(running)
    assert view.lists["floor/tray/row-0"] == ["slot-1-1.1", "slot-1-1.2", "slot-1-1.3"]
    assert view.lists["floor/tray/row-1"] == ["slot-1-1.4", "slot-1-1.5", "gap-2"]


@pytest.mark.parametrize(
    ("ends", "words"),
    [({}, "Every board passed"), (REFUSED, "Hands needed: 1"), (BUSY, "Hands needed: 1")],
)
def test_what_is_to_be_done_next_is_said(ends: dict[str, Any], words: str) -> None:
    running = bench_of(1, 1)
    assert "Plug boards in" in shown(running).parts["hands"]
    plug(running, [place(1, 1)])
    assert "No hand is needed" in shown(running).parts["hands"]
    end(running, place(1, 1), **ends)
    assert words in shown(running).parts["hands"]


def test_a_slot_tells_how_long_its_board_is_at_work_and_whose_label_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = bench_of(1, 2)
    plug(running, [place(1, 1), place(1, 2)])
    running.bench.tray.ordered()[1].label = "L7"
    end(running, place(1, 2))
    running.bench.tray.begin(place(1, 1), 100.0)
    monkeypatch.setattr("agent.page.bench.time", SimpleNamespace(monotonic=lambda: 105.2))
    view = shown(running)
    assert "5 s" in view.parts["slot-1-1.1"]
    assert "L7" in view.parts["slot-1-1.2"]


def test_a_page_without_a_run_says_how_to_begin_one() -> None:
    assert "cellagent provision run --all --watch --page" in shown(None).parts["none"]


async def test_each_failure_and_each_wrong_scan_is_an_alarm_once() -> None:
    running = bench_of(1, 2)
    plug(running, [place(1, 1), place(1, 2)])
    end(running, place(1, 1), **FAILED)
    end(running, place(1, 2), **BUSY)
    for _ in range(2):
        running.look()
        assert (running.failures, running.alarm) == (1, f"A1 failed: {FAILED['reason']}")
    running.bench.tray.retry()
    running.look()
    assert running.failures == 1
    end(running, place(1, 1), **FAILED)
    running.look()
    for line in ("Z9", "a1"):  # no slot, and one that has failed: it is tried again
        await running.scan(line)
        for _ in range(2):
            running.look()
            assert (running.failures, running.alarm) == (3, "Z9 is no slot of this tray")


async def test_a_failed_slot_is_tried_again_by_its_scan_and_no_other_is() -> None:
    running = bench_of(1, 3)
    plug(running, [place(1, 1), place(1, 2)])
    end(running, place(1, 1), **FAILED)
    end(running, place(1, 2))
    await running.scan("a1")
    states = [slot.state for slot in running.bench.tray.ordered()]
    assert states == [SlotState.WAITING, SlotState.PASS, SlotState.EMPTY]
    assert running.bench.changed.is_set()
    await running.scan("A2")
    assert running.bench.last_scan is not None
    assert running.bench.last_scan.words == "A2 has not failed"


async def test_the_ledger_is_read_while_somebody_looks_and_its_trouble_is_told(
    tmp_path: Path,
) -> None:
    for minute in range(3):
        record(tmp_path, NOW - timedelta(minutes=minute), **({} if minute else ENDED))
    midnight = NOW.astimezone().replace(hour=0, minute=0, second=0)
    for seconds in (4, 5):  # one that began before the seven days, and one with them
        record(tmp_path, midnight - timedelta(days=6) + timedelta(seconds=seconds))
    today, week = await records_of(tmp_path), await records_of(tmp_path, "week")
    assert (today.made.total.boards, today.made.total.passed) == (3, 2)
    assert week.made.total.boards == 4
    view = report_view(today, "today", NOW, Painted())
    assert view.headline == "2 boards of 3 passed"
    for words in (
        "66.7 %",
        "First pass",
        "no-answer",
        "key",
        "1.2 s",
        "20.8 % to 93.9 %",
        "<td>7 to 8 s</td><td>1</td>",
    ):
        assert words in "".join(view.parts.values())


async def test_a_week_begins_at_midnight_here_although_the_clocks_were_changed_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Friday 2026-11-20 this zone went from +02:00 to +01:00; the week begins on the 16th."""
    for hour in (21, 22):
        record(tmp_path, datetime(2026, 11, 15, hour, 30, tzinfo=UTC))
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "CET-1CEST,M3.5.0,M11.3.5/3")
        time.tzset()
        records = await records_of(tmp_path, "week")
    time.tzset()
    assert [run.began_at.hour for run in records.runs] == [22]


async def test_a_ledger_is_lost_from_its_first_trouble_on_until_it_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_feed, "_READ_S", 0.0)
    monkeypatch.setattr(bench_feed, "_SHARE", 0)
    monkeypatch.setattr(bench_feed, "_RUNS", 1)
    folder, text, good = (tmp_path / name for name in ("is-a-folder", "is-a-text", "good"))
    (folder / "ledger.sqlite").mkdir(parents=True)
    text.mkdir()
    (text / "ledger.sqlite").write_text("no database " * 100)
    for days in (6, 0):
        record(good, NOW - timedelta(days))
    loop, opened, changes = asyncio.get_running_loop(), asyncio.Event(), []
    place, now = folder, NOW

    def open_ledger() -> Ledger:
        chosen = place
        loop.call_soon_threadsafe(opened.set)
        return ledger_in(chosen, writes=False)

    feed = LedgerFeed(open_ledger, lambda: changes.append(now), lambda: now)
    reading = asyncio.ensure_future(feed.run())

    async def read() -> Records | None:
        """Have it read: when it is opened the second time, the first is over."""
        for _ in range(2):
            opened.clear()
            feed.records("week")
            await asyncio.wait_for(opened.wait(), 60)
        return feed.records("week")

    for _ in range(2):
        assert await read() is None
        assert (feed.lost_at, len(changes)) == (NOW, 1)
        assert "cannot be opened" in feed.trouble
        now += timedelta(minutes=1)
    place = text
    await read()
    assert (feed.lost_at, len(changes)) == (NOW, 2), "another trouble, of the same loss"
    place = good
    found = await read()
    assert found is not None
    assert (found.made.total.boards, feed.lost_at, feed.trouble, len(changes)) == (2, None, "", 3)
    assert await read() is found
    assert len(changes) == 3, "nobody is told of what is as it was"
    record(good, NOW + timedelta(seconds=1))
    found = await read()
    assert found is not None
    assert (found.made.total.boards, len(changes)) == (3, 4)
    place, lost = text, now
    await read()
    assert (feed.lost_at, len(changes)) == (lost, 5)
    place = good
    assert await read() is found
    assert (feed.lost_at, feed.trouble, len(changes)) == (None, "", 6), "the same, and read again"
    now += timedelta(days=1)
    found = await read()
    assert found is not None
    assert (found.made.total.boards, len(changes)) == (2, 7), "the week of another day"
    reading.cancel()


def test_each_number_of_the_report_stands_beside_its_own_name() -> None:
    cycle = Times(array("d", [1.0, 2.0, 9.0]))
    total = Counts(passed=3, first_pass=2, failed=1, unfinished=1, cycle=cycle)
    hour = Counts(passed=3, first_pass=2, failed=2)
    made = Report(
        by="hour",
        total=total,
        groups={"2026-11-22T05:00:00+00:00": hour},
        failures={"no-answer": Failures(attempts=4, boards=3, passed_later=2)},
    )
    text = "".join(numbers(made))
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", text) == [
        ("Boards", "5"),
        ("Yield", "75.0 %"),
        ("95 % interval", "30.1 % to 95.4 %"),
        ("First pass", "50.0 %"),
        ("Cycle, median", "2.0 s"),
        ("95 of 100 within", "9.0 s"),
    ]
    busy = RunRecord(id="run-1", began_at=NOW, ended_at=NOW, outcome="busy")
    parts = report_view(Records(made, [busy]), "today", NOW, Painted()).parts
    assert "<td>22 Nov 05:00</td><td>5</td><td>2</td><td>60.0 %</td>" in parts["hours"]
    assert "<td>4</td><td>3</td><td>2</td>" in parts["failures"]
    assert 'class="st attn"' in parts["runs"], "a board that was at work elsewhere did not fail"


async def test_a_period_without_a_run_says_what_to_do(tmp_path: Path) -> None:
    none = report_view(await records_of(tmp_path, "all"), "all", NOW, Painted())
    assert "cellagent provision run --all" in none.parts["nothing"]
    record(tmp_path, NOW - timedelta(days=9))
    week = report_view(await records_of(tmp_path, "week"), "week", NOW, Painted())
    assert "Show all" in week.parts["nothing"]


async def test_a_file_of_runs_runs_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    record(tmp_path, NOW, **{**ENDED, "reason": HOSTILE})
    heading, row = runs_csv(await records_of(tmp_path)).splitlines()
    assert heading.startswith("began_at,ended_at,station,slot")
    assert "'=cmd()<script>" in row


async def test_a_file_of_runs_waits_for_the_ledger_and_is_none_where_that_cannot_be_read(
    tmp_path: Path,
) -> None:
    record(tmp_path, datetime.now(UTC) - timedelta(days=9), **ENDED)
    (tmp_path / "other" / "ledger.sqlite").mkdir(parents=True)
    for folder, code, holds in (
        (tmp_path, 200, "no-answer"),
        (tmp_path / "other", 503, "cannot be opened"),
    ):
        async with page_of(folder) as page, httpx.AsyncClient(base_url=page.url) as client:
            await client.get(page.link())
            answer = await client.get("/report/runs.csv?period=all")
            assert answer.status_code == code
            saved_as = answer.headers.get("content-disposition", "").rpartition("''")[2]
            assert saved_as == ("runs.csv" if code == 200 else "")
            assert holds in answer.text
            assert holds in (await client.get("/report?period=all")).text
            for quiet in ("/report", "/report?period=today"):
                assert "no-answer" not in (await client.get(quiet)).text


async def test_a_board_that_fails_is_shown_to_who_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.views._LOOK_S", 0.01)
    running = bench_of(1, 1)
    plug(running, [place(1, 1)])
    async with (
        page_of(tmp_path, running=running) as page,
        httpx.AsyncClient(base_url=page.url) as client,
    ):
        await client.get(page.link())
        async with client.stream("GET", "/events", params={"path": "/bench"}) as answer:
            lines = answer.aiter_lines()
            assert FAILED["reason"] not in await anext(lines)
            end(running, place(1, 1), **FAILED)
            async with asyncio.timeout(60):
                while FAILED["reason"] not in await anext(lines):
                    pass
    assert running.failures


class Bench:
    """A page with a running bench, and a browser that opened its link."""

    def __init__(self, page: ServedPage, client: httpx.AsyncClient) -> None:
        self.page, self.client = page, client
        self.token = page.link().partition("#act=")[2]

    async def act(self, path: str, body: object, **headers: str) -> httpx.Response:
        sent = {"origin": self.page.url, "x-cellagent-act": self.token, **headers}
        return await self.client.post(path, json=body, headers=sent)


@pytest.fixture
async def controlled(tmp_path: Path) -> AsyncIterator[tuple[Bench, RunningBench]]:
    running = bench_of(1, 1)
    plug(running, [place(1, 1)])
    end(running, place(1, 1), **FAILED)
    async with (
        page_of(tmp_path, running=running, control=True) as page,
        httpx.AsyncClient(base_url=page.url, follow_redirects=True) as client,
    ):
        answer = await client.get(page.link().partition("#")[0])
        assert answer.url.path == "/bench"
        assert "Control on" in answer.text
        yield Bench(page, client), running


async def test_acts_need_the_second_token_the_origin_and_the_cookie(
    controlled: tuple[Bench, RunningBench],
) -> None:
    bench, running = controlled
    cookie = next(iter(bench.client.cookies.values()))
    for headers in (
        {"x-cellagent-act": ""},
        {"x-cellagent-act": cookie},
        {"x-cellagent-act": bench.token[:-1]},
        {"origin": "http://127.0.0.1:1"},
    ):
        answer = await bench.act("/bench/scan", {"line": "A1"}, **headers)
        assert answer.status_code == 403, headers
    sent = {"x-cellagent-act": bench.token}
    bare = await bench.client.post("/bench/scan", json={"line": "A1"}, headers=sent)
    assert bare.status_code == 403, "no Origin"
    async with httpx.AsyncClient(base_url=bench.page.url) as stranger:
        origin = {"origin": bench.page.url, **sent}
        refused = await stranger.post("/bench/scan", json={"line": "A1"}, headers=origin)
        assert refused.status_code == 401
    assert running.bench.tray.tally() == {SlotState.FAIL: 1}
    assert (await bench.act("/bench/scan", {"line": "A1"})).status_code == 204
    assert running.bench.tray.tally() == {SlotState.WAITING: 1}


async def test_operator_and_lot_are_recorded_from_then_on(
    controlled: tuple[Bench, RunningBench],
) -> None:
    bench, running = controlled
    answer = await bench.act("/bench/order", {"operator": "op 8", "lot": "L-0418"})
    assert answer.status_code == 204
    order = running.station.order
    assert (order.operator, order.lot) == ("op 8", "L-0418")
    assert 'value="op 8"' in (await bench.client.get("/bench")).text


@pytest.mark.parametrize("body", [{}, {"line": 1}, {"line": "x" * 300}, {"line": "a", "b": 1}, []])
async def test_what_is_no_act_is_refused(
    controlled: tuple[Bench, RunningBench], body: object
) -> None:
    bench, running = controlled
    assert (await bench.act("/bench/scan", body)).status_code == 400
    assert running.bench.last_scan is None


async def test_a_page_without_control_offers_no_act(tmp_path: Path) -> None:
    running = bench_of(1, 1)
    async with page_of(tmp_path, running=running) as page:
        assert "#" not in page.link()
        async with httpx.AsyncClient(base_url=page.url, follow_redirects=True) as client:
            text = (await client.get(page.link())).text
            assert "Read only" in text
            assert "data-act" not in text
            sent = {"origin": page.url, "x-cellagent-act": page.links.act_token()}
            refused = await client.post("/bench/scan", json={"line": "A1"}, headers=sent)
            assert refused.status_code == 403
