"""From what a kit prints to the outbox: who sent it, when, and what a full disk delays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.config.profile import OutboxSettings
from agent.console.line_classifier import ConsoleReader, LineClassifier
from agent.observability.ingest.device_identity import IdentityTracker, PartialIdentity
from agent.wiring.forwarding import Forwarder, trace_reason
from at.virtual.console import export_lines
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed
from tests.support.outbox.outboxes import OutboxOnFullDisk

MESSAGE = b"\x02 a message that is longer than one chunk " * 8


@pytest.fixture
def outbox(tmp_path: Path):
    with OutboxOnFullDisk(tmp_path / "outbox", OutboxSettings(min_free_bytes=0)) as opened:
        yield opened


def names() -> IdentityTracker:
    return IdentityTracker(lambda: PartialIdentity("kit-1", "nrf9161"))


@pytest.mark.contract("O5.1")
async def test_a_message_has_one_sender_also_if_another_name_is_learned_in_its_middle(
    outbox: OutboxOnFullDisk,
):
    known = ["kit"]
    forwarder = Forwarder(outbox, IdentityTracker(lambda: PartialIdentity(known[-1])))
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


@pytest.mark.parametrize(
    ("reasons", "number"),
    [
        ([2, 17, 32], 0x800B),
        ([16, 18, 19, 20, 21], 0x9200),
        (range(22, 29), 0x9100),
        ([29, 30, 31, 33, 34, 35, 36], 0x9300),
        ([3, 4], 0x8008),
        ([37, 40, 99], 0x9402),
        ([0, 1, 5, 15], 0x9400),
    ],
)
def test_each_reason_of_the_kernel_has_the_services_number(reasons, number):
    assert {trace_reason(reason) for reason in reasons} == {number}
