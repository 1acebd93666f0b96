"""From what a kit prints to the outbox: who sent it, when, and what a full disk delays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.config.profile import OutboxSettings
from agent.console.chunk_lines import ChunkLine
from agent.console.line_classifier import ConsoleReader, LineClassifier
from agent.errors import AgentError
from agent.observability.ingest.device_identity import IdentityTracker, PartialIdentity
from agent.outbox import ItemKind, OutboxFull
from agent.outbox.items import TooLarge
from agent.tasks import cancel_and_wait
from agent.wiring.forwarding import RETRY_S, Forwarder, trace_reason
from at.virtual.console import export_lines
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed
from tests.support.outbox.outboxes import OutboxOnFullDisk, bodies, totals

MESSAGE = b"\x02 a message that is longer than one chunk " * 8


@pytest.fixture
def outbox(tmp_path: Path):
    with OutboxOnFullDisk(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as opened:
        yield opened


def names() -> IdentityTracker:
    return IdentityTracker(PartialIdentity("kit-1", "nrf9161"))


def kinds_of(told: Sequence[AgentError | None]) -> list[type]:
    return [type(error) for error in told]


@pytest.mark.contract("O5.1")
async def test_a_message_has_one_sender_also_if_another_name_is_learned_in_its_middle(
    outbox: OutboxOnFullDisk,
):
    known = ["kit"]
    names = IdentityTracker(PartialIdentity(), lambda: PartialIdentity(known[-1]))
    forwarder = Forwarder(outbox, names)
    for line in [*export_lines(MESSAGE), *export_lines(MESSAGE[::-1])]:
        await forwarder.forward(LineClassifier().classify(line.encode()), datetime.now(UTC))
        known.append("its-uuid")
    found = [item.device for item in outbox.transact(lambda store: store.list_items())]
    count = len(export_lines(MESSAGE))
    assert found == ["kit"] * count + ["its-uuid"] * count


@pytest.mark.contract("O3.4")
async def test_a_dump_that_waited_for_the_disk_keeps_the_time_at_which_it_was_heard(
    outbox: OutboxOnFullDisk,
):
    forwarder = Forwarder(outbox, names(), on_failure=lambda _error: None)
    heard = datetime.now(UTC) - timedelta(hours=2)
    outbox.full = True
    dump = printed(header() + arch() + memory(0x20000000, bytes(100)))
    await forwarder.forward(ConsoleReader().receive(dump), heard)
    assert forwarder.waiting == 2
    outbox.full = False
    await forwarder.flush()
    _, event = outbox.transact(lambda store: store.list_items())
    assert forwarder.waiting == 0
    assert abs(datetime.fromisoformat(event.captured) - heard) < timedelta(seconds=1)


@pytest.mark.contract("C7")
async def test_a_crash_whose_dump_is_not_whole_is_told_by_what_can_be_read_of_it(
    outbox: OutboxOnFullDisk,
):
    whole = printed(header(reason=19) + arch() + memory(0x20000000, bytes(100)))
    last = whole.rindex(b"#CD:0")
    for dump in (
        whole.replace(b"#CD:END#", b""),  # the kit restarted
        whole[:last] + b"#CD:zz" + whole[last + 6 :],
        whole[: whole.index(b"#CD:5a45")] + b"#CD:END#\r\n",  # nothing of it can be read
    ):
        reader = ConsoleReader()
        items = [*reader.receive(dump), *reader.finish()]
        await Forwarder(outbox, names()).forward(items, datetime.now(UTC))
    told = [json.loads(body) for body in bodies(outbox, ItemKind.EVENT, "kit-1")]
    assert [event["event_info"]["reason"] for event in told] == [0x9200, 0x9200]
    assert {event["event_info"]["pc"] for event in told} == {0x106}
    assert [event["user_info"] for event in told] == [
        {
            "zephyr_reason": 19,
            "coredump": "incomplete",
            "detail": "the input ended before the dump did",
        },
        {"zephyr_reason": 19, "coredump": "damaged", "detail": "no hex digits: 'zz000000'"},
    ]
    assert not bodies(outbox, ItemKind.COREDUMP, "kit-1")


@pytest.mark.contract("O3.4")
async def test_what_no_disk_took_is_tried_again_until_it_is_stored(outbox: OutboxOnFullDisk):
    told: list[AgentError | None] = []
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        outbox.full = len(waits) < 3
        await asyncio.sleep(0)

    def tell(error: AgentError | None) -> None:
        told.append(error)
        if error is None:
            stored.set()

    stored = asyncio.Event()
    forwarder = Forwarder(outbox, names(), on_failure=tell, wait=wait)
    trying = asyncio.create_task(forwarder.run())
    outbox.full = True
    await forwarder.forward([ChunkLine(b"a message")], datetime.now(UTC))
    assert (forwarder.waiting, forwarder.is_stuck) == (1, True)
    await asyncio.wait_for(stored.wait(), 60)
    for _ in range(10):  # it does not go on trying
        await asyncio.sleep(0)
    await cancel_and_wait(trying)
    assert waits == [RETRY_S] * 3
    assert kinds_of(told) == [OutboxFull] * 3 + [type(None)]
    (item,) = outbox.transact(lambda store: store.list_items())
    assert (item.kind, forwarder.waiting, forwarder.lost) == (ItemKind.CHUNK, 0, 0)
    assert not forwarder.is_stuck


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_what_is_tried_again_is_stored_once_though_that_is_cancelled(
    outbox: OutboxOnFullDisk, turns: int
):
    async def wait(_seconds: float) -> None:
        outbox.full = False

    first, *others = (
        item for line in export_lines(MESSAGE) for item in LineClassifier().classify(line.encode())
    )
    forwarder = Forwarder(outbox, names(), on_failure=lambda _: None, wait=wait)
    await forwarder.forward([first], datetime.now(UTC))
    outbox.full = True
    await forwarder.forward(others, datetime.now(UTC))
    trying = asyncio.create_task(forwarder.run())
    for _ in range(turns):
        await asyncio.sleep(0)
    await cancel_and_wait(trying)
    outbox.full = False
    await forwarder.flush()
    assert (totals(outbox).waiting, forwarder.waiting) == (1 + len(others), 0)


@pytest.mark.contract("O3.4")
async def test_the_oldest_of_more_than_the_memory_holds_are_lost_and_counted(
    outbox: OutboxOnFullDisk,
):
    forwarder = Forwarder(outbox, names(), on_failure=lambda _error: None)
    outbox.full = True
    printed = [ChunkLine(b"number %d" % number) for number in range(1003)]
    await forwarder.forward(printed[:600], datetime.now(UTC))
    assert (forwarder.waiting, forwarder.lost) == (600, 0)
    await forwarder.forward(printed[600:], datetime.now(UTC))
    assert (forwarder.waiting, forwarder.lost) == (1000, 3)
    outbox.full = False
    await forwarder.flush()
    found = bodies(outbox, device=forwarder.names.sender)
    assert found == [line.chunk for line in printed[3:]]


async def test_what_is_larger_than_all_that_may_wait_holds_nothing_else_up(tmp_path: Path):
    told: list[AgentError | None] = []
    limits = OutboxSettings(min_free_bytes=0, max_bytes=100_000)
    with OutboxOnFullDisk(tmp_path / "outbox", limits) as outbox:
        forwarder = Forwarder(outbox, names(), on_failure=told.append)
        sizes = [10, 200_000, 20]
        lines = [ChunkLine(b"x" * size) for size in sizes]
        await forwarder.forward(lines, datetime.now(UTC))
        found = bodies(outbox, device=forwarder.names.sender)
    assert [len(body) for body in found] == [10, 20]
    assert kinds_of(told) == [TooLarge, type(None)]
    assert (forwarder.waiting, forwarder.lost, forwarder.is_stuck) == (0, 1, False)


@pytest.mark.parametrize(
    ("reasons", "number"),
    [
        ([2, 17, 32], 0x800B),
        ([16, 18, 19, 20, 21], 0x9200),
        (range(22, 29), 0x9100),
        ([29, 30, 31, 33, 34, 35, 36], 0x9300),
        ([3, 4], 0x8008),
        ([37, 40, 44], 0x9402),
        ([0, 1, 5, 15, 45, 99], 0x9400),
    ],
)
def test_each_reason_of_the_kernel_has_the_services_number(reasons, number):
    assert {trace_reason(reason) for reason in reasons} == {number}
