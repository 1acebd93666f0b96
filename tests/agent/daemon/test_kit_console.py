from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import pytest
from zephyr_dumps import arch, header, memory, printed

from agent.config.profile import KitSettings
from agent.config.profile import OutboxSettings as Limits
from agent.console.chunk_lines import ChunkLine
from agent.console.port import own_port
from agent.console.reader import ConsoleReader, LineClassifier
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.link import HeldPort
from agent.daemon.status import State, StatusRegistry
from agent.observability.ingest.device_identity import IdentityTracker, PartialIdentity
from agent.outbox import ItemKind, NewItem, Outbox, OutboxFull, Receipt
from agent.wiring.forwarding import Forwarder, utc_now
from at.driver.stream import Stream
from at.protocol.errors import LinkLost
from at.protocol.exchange import Exchange, Unknown
from at.protocol.framing import Log
from at.virtual.console import export_lines

MESSAGE = b"\x02 a message that is longer than one chunk " * 8


class SmallDisk(Outbox):
    """An outbox on a disk that is full until it is not."""

    full = False

    async def aput(self, items: list[NewItem]) -> Receipt:
        if self.full:
            raise OutboxFull("the disk is full", hint="free some space")
        return await super().aput(items)


@pytest.fixture
def outbox(tmp_path: Path):
    with SmallDisk(tmp_path / "outbox", Limits(min_free_bytes=0)) as opened:
        yield opened


def names() -> IdentityTracker:
    return IdentityTracker(lambda: PartialIdentity("kit-1", "nrf9161"))


def bodies(outbox: Outbox) -> int:
    return outbox.transact(lambda store: store.totals()).waiting


async def test_chunks_of_the_at_port_are_on_disk_however_the_link_ends(outbox: SmallDisk):
    console = KitConsole(
        StatusRegistry().add_concern("console", "kit"), outbox, names(), lambda: None
    )
    lines: Stream = Stream(4096, lambda _stream: None)
    exported = export_lines(MESSAGE)
    for line in exported:
        lines.queue.put(Log(line))
    lines.queue.put(Unknown("boot"))
    hearing = asyncio.ensure_future(
        console.read_at_port(lines, HeldPort(StatusRegistry().add_concern("link", "kit")))
    )
    await asyncio.sleep(0)
    hearing.cancel()
    await asyncio.gather(hearing, return_exceptions=True)
    await outbox.atransact(lambda store: store.totals())
    assert bodies(outbox) == len(exported)


async def test_a_start_is_counted_once_on_the_at_port_as_on_a_port_of_its_own(outbox: SmallDisk):
    banners = (
        b"*** Booting MCUboot v2.1.0 ***\r\n*** Booting nRF Connect SDK v3.1.1 ***\r\nReady\r\n"
    )
    concern = StatusRegistry().add_concern("console", "kit")
    console = KitConsole(concern, outbox, names(), lambda: None)
    lines: Stream = Stream(4096, lambda _stream: None)
    for item in Exchange().feed(banners):
        lines.queue.put(item)
    lines.end(LinkLost("the cable"))
    with pytest.raises(LinkLost):
        await console.read_at_port(lines, HeldPort(StatusRegistry().add_concern("link", "kit")))
    assert concern.facts["reboots"] == 1


@pytest.mark.contract("O5.1")
async def test_a_message_has_one_sender_also_if_another_name_is_learned_in_its_middle(
    outbox: SmallDisk,
):
    known = ["kit"]
    forwarder = Forwarder(outbox, IdentityTracker(lambda: PartialIdentity(known[-1])))
    for line in [*export_lines(MESSAGE), *export_lines(MESSAGE[::-1])]:
        await forwarder.forward(LineClassifier().classify(line.encode()), utc_now())
        known.append("its-uuid")
    found = [item.device for item in outbox.transact(lambda store: store.list_items())]
    count = len(export_lines(MESSAGE))
    assert found == ["kit"] * count + ["its-uuid"] * count


async def test_a_full_disk_is_told_once_and_nothing_is_lost(
    outbox: SmallDisk, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    again = asyncio.Event()

    async def wait(_event: asyncio.Event, _seconds: float) -> None:
        await again.wait()

    registry = StatusRegistry()
    concern = registry.add_concern("console", "kit")
    console = KitConsole(concern, outbox, names(), lambda: None, wait=wait)
    kit = KitSettings(port="/dev/none", console_port="same")

    running = asyncio.ensure_future(console.run(kit))
    outbox.full = True
    chunks = [
        item for line in export_lines(MESSAGE) for item in LineClassifier().classify(line.encode())
    ]
    for item in chunks:
        await console.handle([item])
    assert concern.state is State.TROUBLE
    assert [r.message for r in caplog.records] == ["the disk is full; try: free some space"]
    outbox.full = False
    again.set()
    while concern.state is State.TROUBLE:
        await registry.changed()
    assert bodies(outbox) == len(chunks)
    assert "works again" in caplog.records[-1].message
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_does_not_fit_into_memory_either_is_counted(outbox: SmallDisk):
    concern = StatusRegistry().add_concern("console", "kit")
    console = KitConsole(concern, outbox, names(), lambda: None)
    outbox.full = True
    await console.handle([ChunkLine(number.to_bytes(4, "big")) for number in range(1003)])
    assert concern.facts["lost"] == 3


async def test_a_dump_larger_than_the_outbox_is_counted_as_lost_and_in_nobodys_way(tmp_path: Path):
    registry = StatusRegistry()
    concern = registry.add_concern("console", "kit")
    dump = header() + arch() + memory(0x20000000, bytes(5000))
    with Outbox(tmp_path / "outbox", Limits(min_free_bytes=0, max_bytes=4000)) as small:
        console = KitConsole(concern, small, names(), lambda: None)
        chunks = [
            item
            for line in export_lines(MESSAGE)
            for item in LineClassifier().classify(line.encode())
        ]
        await console.handle([*chunks, *ConsoleReader().receive(printed(dump))])
        found = small.transact(lambda store: store.list_items())
    assert [item.kind for item in found] == [ItemKind.CHUNK] * len(chunks) + [ItemKind.EVENT]
    assert concern.facts["lost"] == 1
    assert concern.state is State.WELL


@pytest.mark.contract("O3.4")
async def test_a_dump_that_waited_for_the_disk_keeps_the_time_at_which_it_was_heard(
    outbox: SmallDisk,
):
    forwarder = Forwarder(outbox, names(), on_failure=lambda _error: None)
    heard = utc_now() - timedelta(hours=2)
    outbox.full = True
    dump = printed(header() + arch() + memory(0x20000000, bytes(100)))
    await forwarder.forward(ConsoleReader().receive(dump), heard)
    assert forwarder.waiting == 2
    outbox.full = False
    await forwarder.flush()
    _, event = outbox.transact(lambda store: store.list_items())
    assert (forwarder.waiting, event.captured_s) == (0, heard.timestamp())


@pytest.mark.parametrize(
    ("console_port", "own"),
    [("same", ""), ("none", ""), ("auto", ""), ("/dev/ttyACM1", "/dev/ttyACM1")],
)
async def test_the_console_is_on_a_port_of_its_own_only_where_that_is_known(console_port, own):
    assert await own_port(KitSettings(port="tcp://127.0.0.1:1", console_port=console_port)) == own
