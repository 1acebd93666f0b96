"""What a kit prints is stored, and shown to windows, of which none holds another up."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.profile import KitSettings, OutboxSettings
from agent.console.chunk_lines import ChunkLine
from agent.console.line_classifier import ConsoleCounts, ConsoleReader, LineClassifier
from agent.console.log_line import parse_line
from agent.console.port import Heard
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.console_windows import MOST_WAITING, ConsoleWatcher, ConsoleWatchers
from agent.daemon.kit.held_port import HeldPort
from agent.daemon.kit.store import KitStore
from agent.daemon.snapshot import ConsoleStatus, LinkStatus, Phase
from agent.daemon.status import Concern, StatusRegistry
from agent.observability.ingest.device_identity import IdentityTracker, PartialIdentity
from agent.outbox import ItemKind, NewItem, Outbox, Receipt
from agent.tasks import cancel_and_wait
from at.driver.stream import Stream
from at.protocol.errors import LinkLost
from at.protocol.line.exchange import Exchange
from at.protocol.line.framing import Log
from at.protocol.line.items import Unknown
from at.virtual.console import export_lines
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed
from tests.support.modem.byte_arrivals import LAST, until_the_last
from tests.support.modem.pty_far_end import PtyFarEnd
from tests.support.outbox.outboxes import OutboxOnFullDisk, totals

MESSAGE = b"\x02 a message that is longer than one chunk " * 8


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
            watcher.put([line], ConsoleCounts())
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
    watcher.put([b"before\n", large], ConsoleCounts())
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
        assert first.counts().lines == 3
        assert len((await read_all(second))[0]) == 1
    watchers.publish([parse_line(b"nobody is there")])


async def test_a_dump_that_comes_is_told_once_and_so_is_its_end():
    watchers = ConsoleWatchers(ConsoleCounts())
    with watchers.subscribed() as watcher:
        for size in (0, 16, 32, 0, 0):
            watchers.publish_dump_bytes(size)
        told = [json.loads(line) for line in (await read_all(watcher))[0]]
        assert told == [{"coming": 16}, {"coming": 0}]


@pytest.fixture
def outbox(tmp_path: Path):
    with OutboxOnFullDisk(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as opened:
        yield opened


async def no_events() -> None:
    """Store none: nothing here publishes any."""


def console_of(concern: Concern[ConsoleStatus], outbox: Any, **given: Any) -> KitConsole:
    names = IdentityTracker(PartialIdentity("kit-1", "nrf9161"))
    usual = {"store_events": no_events, "keep_dump": lambda _data: Path("kept")}
    return KitConsole(concern, outbox, names, lambda: None, **{**usual, **given})


async def test_chunks_of_the_at_port_are_on_disk_however_the_link_ends(outbox: OutboxOnFullDisk):
    console = console_of(StatusRegistry().add_concern(ConsoleStatus, "kit"), outbox)
    lines: Stream = Stream(4096, lambda _stream: None)
    exported = export_lines(MESSAGE)
    for line in exported:
        lines.queue.put(Log(line))
    lines.queue.put(Unknown("boot"))
    hearing = asyncio.ensure_future(
        console.read_at_port(lines, HeldPort(StatusRegistry().add_concern(LinkStatus, "kit")))
    )
    await asyncio.sleep(0)
    hearing.cancel()
    await asyncio.gather(hearing, return_exceptions=True)
    await outbox.atransact(lambda store: store.totals())
    assert totals(outbox).waiting == len(exported)


async def test_a_start_is_counted_once_on_the_at_port_as_on_a_port_of_its_own(
    outbox: OutboxOnFullDisk,
):
    banners = (
        b"*** Booting MCUboot v2.1.0 ***\r\n*** Booting nRF Connect SDK v3.1.1 ***\r\nReady\r\n"
    )
    concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
    console = console_of(concern, outbox)
    lines: Stream = Stream(4096, lambda _stream: None)
    for item in Exchange().feed(banners):
        lines.queue.put(item)
    lines.end(LinkLost("the cable"))
    with pytest.raises(LinkLost):
        await console.read_at_port(lines, HeldPort(StatusRegistry().add_concern(LinkStatus, "kit")))
    assert concern.status.reboots == 1


async def test_what_a_kit_printed_of_a_fault_is_taken_with_the_restart_behind_it_once(
    outbox: OutboxOnFullDisk,
):
    taken = []
    concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
    console = console_of(concern, outbox)
    console.on_restart = lambda _line: taken.append(console.take_fault())
    crash = (
        b"***** USAGE FAULT *****\r\n"
        b"Faulting instruction address (r15/pc): 0x0002c5f4\r\n"
        b"Current thread: 0x200016f8 (main)\r\n"
    )
    start = b"*** Booting nRF Connect SDK v3.1.1 ***\r\n"
    for data in (start, crash + start, start):
        await console.handle(ConsoleReader().receive(data), is_own=True)
    before, fault, after = taken
    assert (before, after) == ("", "")
    assert fault.startswith("usage fault at 0x0002c5f4 in thread main (")


async def test_a_full_disk_is_told_once_and_nothing_is_lost(
    outbox: OutboxOnFullDisk, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    again = asyncio.Event()

    async def wait(_seconds: float) -> None:
        await again.wait()

    registry = StatusRegistry()
    concern = registry.add_concern(ConsoleStatus, "kit")
    console = console_of(concern, outbox, wait=wait)
    kit = KitSettings(port="/dev/none", console_port="same")

    running = asyncio.ensure_future(console.run(kit))
    outbox.full = True
    chunks = [
        item for line in export_lines(MESSAGE) for item in LineClassifier().classify(line.encode())
    ]
    for item in chunks:
        await console.handle([item])
    assert concern.phase is Phase.TROUBLE
    assert [r.message for r in caplog.records] == ["the disk is full; try: free some space"]
    assert concern.status.unstored == len(chunks)
    outbox.full = False
    again.set()
    while concern.phase is Phase.TROUBLE:
        await registry.changed()
    assert totals(outbox).waiting == len(chunks)
    assert concern.status.unstored == 0
    assert "works again" in caplog.records[-1].message
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_chunk_that_was_damaged_on_the_line_is_counted_and_logged(
    outbox: OutboxOnFullDisk, caplog: pytest.LogCaptureFixture
):
    concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
    console = console_of(concern, outbox)
    line = export_lines(MESSAGE)[0]
    await console.handle(ConsoleReader().receive(f"{line}\n{line[:9]}!{line[10:]}\n".encode()))
    assert (concern.status.chunks, concern.status.damaged) == (1, 1)
    assert caplog.messages == ["a chunk is lost, damaged on the line: no base64 character: b'!'"]


async def test_what_the_disk_has_no_room_for_at_the_end_is_told_as_lost(
    outbox: OutboxOnFullDisk, caplog: pytest.LogCaptureFixture
):
    console = console_of(StatusRegistry().add_concern(ConsoleStatus, "kit"), outbox)
    outbox.full = True
    for number in range(2):
        await console.handle([ChunkLine(number.to_bytes(4, "big"))])
    await console.close()
    assert caplog.messages[-1] == "2 chunks and dumps in memory alone: lost with the agent's end"
    outbox.full = False
    await console.close()
    assert totals(outbox).waiting == 2


async def test_what_does_not_fit_into_memory_either_is_counted(outbox: OutboxOnFullDisk):
    concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
    console = console_of(concern, outbox)
    outbox.full = True
    await console.handle([ChunkLine(number.to_bytes(4, "big")) for number in range(1003)])
    assert concern.status.lost == 3


async def test_a_dump_larger_than_the_outbox_is_counted_as_lost_and_in_nobodys_way(tmp_path: Path):
    registry = StatusRegistry()
    concern = registry.add_concern(ConsoleStatus, "kit")
    dump = header() + arch() + memory(0x20000000, bytes(5000))
    with Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0, max_bytes=4000)) as small:
        console = console_of(concern, small)
        chunks = [
            item
            for line in export_lines(MESSAGE)
            for item in LineClassifier().classify(line.encode())
        ]
        await console.handle([*chunks, *ConsoleReader().receive(printed(dump))])
        found = small.transact(lambda store: store.list_items())
    assert [item.kind for item in found] == [ItemKind.CHUNK] * len(chunks) + [ItemKind.EVENT]
    assert concern.status.lost == 1
    assert concern.phase is Phase.WELL


async def test_a_dump_that_is_not_whole_is_kept_with_the_command_that_reads_it(
    outbox: OutboxOnFullDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    store = KitStore(tmp_path, "lab", "the left")
    concern = StatusRegistry().add_concern(ConsoleStatus, "the left")
    console = console_of(concern, outbox, keep_dump=store.keep_dump)
    dump = header() + arch() + memory(0x20000000, bytes(100))
    kept = tmp_path / "kits" / "lab" / "the%20left.coredump"
    await console.handle(ConsoleReader().receive(printed(dump)))
    assert not kept.exists()
    nothing = printed(b"")
    for size in (150, 120):
        await console.handle(ConsoleReader().receive(printed(dump[:size]) + nothing))
        assert kept.read_bytes() == dump[:size], "the newest"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert f"`cellagent capture coredump {kept} --out core.bin`" in caplog.text
    assert "not whole, and not sent: block M holds 54 of 100 bytes" in caplog.text
    kept.unlink()
    kept.parent.chmod(0o777)  # for others to change
    caplog.clear()
    await console.handle(ConsoleReader().receive(printed(dump[:90])))
    assert "nor is it kept: " in caplog.text


class SlowOutbox(Outbox):
    """An outbox whose disk takes nothing before `go` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, OutboxSettings(min_free_bytes=0))
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def aput(self, items: list[NewItem]) -> Receipt:
        self.asked.set()
        await self.go.wait()
        return await super().aput(items)


async def test_what_the_kit_printed_is_on_disk_before_a_window_shows_it(tmp_path: Path):
    with SlowOutbox(tmp_path / "outbox") as slow:
        concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
        console = console_of(concern, slow)
        with console.watchers.subscribed() as watcher:
            handling = asyncio.ensure_future(console.handle([ChunkLine(b"\x08\x02")]))
            await slow.asked.wait()
            assert not watcher._readable.is_set()
            slow.go.set()
            await handling
            assert len((await read_all(watcher))[0]) == 1


async def test_what_is_being_stored_when_the_link_is_lost_is_shown_once_it_is_on_disk(
    tmp_path: Path,
):
    with SlowOutbox(tmp_path / "outbox") as slow:
        concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
        console = console_of(concern, slow)
        with console.watchers.subscribed() as watcher:
            console._counts.chunks += 1  # it was read
            handling = asyncio.ensure_future(console.handle([ChunkLine(b"\x08\x02")]))
            await slow.asked.wait()
            handling.cancel()
            await asyncio.gather(handling, return_exceptions=True)
            later = asyncio.ensure_future(console.handle([parse_line(b"<inf> app: later")]))
            await asyncio.sleep(0)
            assert not watcher._readable.is_set()
            assert (watcher.counts().chunks, concern.status.chunks) == (0, 0)
            slow.go.set()
            await later
            kinds = [json.loads(line)["is"] for line in (await read_all(watcher))[0]]
            assert kinds == ["ChunkLine", "LogLine"]
            assert (watcher.counts().chunks, concern.status.chunks) == (1, 1)


@pytest.mark.contract("O3.4")
@pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
async def test_what_a_port_of_its_own_has_received_is_on_disk_whenever_the_port_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    come = until_the_last(monkeypatch, "agent.daemon.kit.console")
    first, *others = (line.encode() + b"\r\n" for line in export_lines(MESSAGE))
    with SlowOutbox(tmp_path / "outbox") as slow, PtyFarEnd() as kit:
        concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
        console = console_of(concern, slow)
        settings = KitSettings(port="tcp://127.0.0.1:1", console_port=kit.path)
        running = asyncio.create_task(console.run(settings))
        kit.say(first)
        await slow.asked.wait()  # for its disk
        kit.say(b"".join(others) + LAST)
        await come.wait()
        running.cancel()
        slow.go.set()
        await asyncio.wait([running])
        assert totals(slow).waiting == 1 + len(others)


@pytest.mark.contract("O3.4")
async def test_what_was_printed_while_the_port_was_looked_for_is_stored_though_it_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def found(_kit: KitSettings) -> Heard:
        asking.append(asyncio.ensure_future(released.enter_async_context(port.released("west"))))
        await asyncio.sleep(0)
        return Heard("/dev/ttyACM1", "".join(f"{line}\r\n" for line in printed_chunks).encode())

    monkeypatch.setattr("agent.daemon.kit.console.own_port", found)
    printed_chunks = export_lines(MESSAGE)
    asking: list[asyncio.Task[None]] = []
    with Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as outbox:
        registry = StatusRegistry()
        concern = registry.add_concern(ConsoleStatus, "kit")
        console = console_of(concern, outbox)
        port, released = console.held_port, AsyncExitStack()
        running = asyncio.create_task(console.run(KitSettings(port="/dev/ttyACM0")))
        while concern.status.chunks < len(printed_chunks):
            await registry.changed()
        assert port.released_to == "west"
        await cancel_and_wait(running, *asking)
        await released.aclose()
        assert totals(outbox).waiting == len(printed_chunks)


@pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
async def test_a_window_goes_on_counting_when_the_port_is_given_back(tmp_path: Path):
    registry = StatusRegistry()
    concern = registry.add_concern(ConsoleStatus, "kit")
    with Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as box, PtyFarEnd() as kit:
        console = console_of(concern, box)
        settings = KitSettings(port="tcp://127.0.0.1:1", console_port=kit.path)
        running = asyncio.create_task(console.run(settings))
        with console.watchers.subscribed() as watcher:
            for number, line in enumerate(export_lines(MESSAGE)[:2], 1):
                kit.say(line.encode() + b"\r\n")
                while concern.status.chunks < number:
                    await registry.changed()
                async with console.held_port.released("west"):
                    assert watcher.counts().chunks == number
        assert concern.status.port == kit.path
        await cancel_and_wait(running)


async def test_a_restart_is_shown_once_the_event_of_it_is_on_disk(tmp_path: Path):
    stored = asyncio.Event()
    order: list[str] = []

    async def store_events() -> None:
        await stored.wait()
        order.append("stored")

    with Outbox(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as outbox:
        concern = StatusRegistry().add_concern(ConsoleStatus, "kit")
        console = console_of(concern, outbox, store_events=store_events)
        with console.watchers.subscribed() as watcher:
            items = ConsoleReader().receive(b"*** Booting nRF Connect SDK v3.1.1 ***\r\n")
            handling = asyncio.ensure_future(console.handle(items))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not watcher._readable.is_set()
            stored.set()
            await handling
            assert order == ["stored"]
            assert len((await read_all(watcher))[0]) == 2
