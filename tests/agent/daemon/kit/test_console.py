"""Who watches a console holds nobody up, and loses only what is his own."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from agent.console.log_line import parse_line
from agent.console.reader import ConsoleCounts, LineClassifier
from agent.daemon.kit.console import MOST_WAITING, ConsoleWatcher, ConsoleWatchers


async def read_all(watcher: ConsoleWatcher) -> tuple[list[bytes], int]:
    """Return every line that waits, and how many were lost before them."""
    lines, lost = [], 0
    while watcher._readable.is_set():
        data, missed = await watcher.next()
        lines += data.splitlines(keepends=True)
        lost += missed
    return lines, lost


@given(sizes=st.lists(st.integers(1, MOST_WAITING // 2), max_size=12), reads=st.sets(st.integers()))
def test_the_newest_lines_wait_in_order_within_the_bound(sizes, reads):
    async def watch() -> None:
        watcher = ConsoleWatcher(ConsoleCounts())
        sent, read, lost = [], [], 0
        for number, size in enumerate(sizes):
            line = f"{number} ".encode().ljust(size, b".") + b"\n"
            sent.append(line)
            watcher.put([line])
            assert watcher._size <= MOST_WAITING
            if number in reads:
                lines, missed = await read_all(watcher)
                read, lost = read + lines, lost + missed
        lines, missed = await read_all(watcher)
        read, lost = read + lines, lost + missed
        assert len(read) + lost == len(sent)
        assert [line for line in sent if line in set(read)] == read
        assert not sent or read[-1] == sent[-1]

    asyncio.run(watch())


async def test_a_dump_that_is_larger_than_the_bound_waits_all_the_same():
    watcher = ConsoleWatcher(ConsoleCounts())
    large = b"x" * (2 * MOST_WAITING) + b"\n"
    watcher.put([b"before\n", large])
    assert await read_all(watcher) == ([large], 1)


async def test_each_window_has_what_came_since_it_was_opened_and_its_own_count():
    counts = ConsoleCounts()
    watchers, classifier = ConsoleWatchers(counts), LineClassifier(counts)
    with watchers.subscribed() as first:
        watchers.publish(classifier.classify(b"<inf> app: one"))
        with watchers.subscribed() as second:
            watchers.publish(classifier.classify(b"<inf> app: two"))
        watchers.publish(classifier.classify(b"<inf> app: three"))
        texts = [json.loads(line)["item"]["text"] for line in (await read_all(first))[0]]
        assert texts == ["one", "two", "three"]
        assert first.counts()["lines"] == 3
        assert len((await read_all(second))[0]) == 1
    watchers.publish([parse_line(b"nobody is there")])


async def test_a_dump_that_comes_is_told_once_and_so_is_its_end():
    watchers = ConsoleWatchers(ConsoleCounts())
    with watchers.subscribed() as watcher:
        for size in (0, 16, 32, 0, 0):
            watchers.publish_dump_bytes(size)
        told = [json.loads(line) for line in (await read_all(watcher))[0]]
        assert told == [{"coming": 16}, {"coming": 0}]
