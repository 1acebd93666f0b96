"""What the outbox takes for the same, and keeps once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.observability.ingest.chunk_codec import crc16
from agent.outbox import ItemKind, NewItem
from agent.outbox.items import Selection, unnamed
from tests.support.outbox.outboxes import Clock, bodies, chunk, chunks, outbox, totals


def test_an_export_heard_twice_within_ten_minutes_is_kept_once(tmp_path: Path):
    clock = Clock()
    with outbox(tmp_path, clock=clock) as box:
        first = box.put(chunks(b"a long message in several chunks", 12))
        again = box.put(chunks(b"a long message in several chunks", 20))
        assert (len(first.ids), again.ids) == (4, ())
        assert again.duplicates == 2
        assert box.put([chunk(7)]).duplicates == 0
        assert box.put([chunk(7)]).duplicates == 1
        clock.now += 600
        assert box.put([chunk(7)]).duplicates == 0
        assert totals(box).counts["duplicates"] == 3


def test_what_is_too_old_to_be_heard_again_takes_no_memory(tmp_path: Path):
    clock = Clock()
    with outbox(tmp_path, clock=clock) as box:
        for number in range(3):
            box.put([chunk(number)])
            clock.now += 600
        assert len(box.transact(lambda store: store._dedup._seen)) == 1


def test_a_message_that_comes_chunk_by_chunk_is_recognised_at_its_end(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path) as box:
        for item in message + message:
            box.put([item])
        assert bodies(box) == [item.body for item in message]


def test_what_was_heard_is_recognised_after_a_restart(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path) as box:
        box.put(message[:3])
    with outbox(tmp_path) as box:
        box.put(message[3:])
        box.put(message)
        assert bodies(box) == [item.body for item in message]


def test_messages_that_begin_alike_and_have_one_crc_are_two(tmp_path: Path):
    beginning = b"\x02" + bytes(40)
    wanted = crc16(beginning + bytes(4))
    alike = next(
        message
        for number in range(1, 1 << 20)
        if crc16(message := beginning + number.to_bytes(4, "big")) == wanted
    )
    for mtu in (100, 20):
        with outbox(tmp_path / str(mtu)) as box:
            assert box.put(chunks(beginning + bytes(4), mtu)).duplicates == 0
            assert box.put(chunks(alike, mtu)).duplicates == 0
            assert box.put(chunks(alike, 30)).duplicates > 0


def test_the_same_from_another_device_is_another_message(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put(chunks(b"same", device="kit"))
        assert box.put(chunks(b"same", device="other")).duplicates == 0


def test_what_a_kit_printed_before_its_device_was_known_is_the_same_once_it_is(tmp_path: Path):
    unknown = unnamed("kit")
    told = [chunk(7, unknown), *chunks(bytes(range(30)), device=unknown)]
    told = [replace(item, starts=1) for item in told]
    with outbox(tmp_path) as box:
        box.put(told[:2])  # the second one begins a message
        box.transact(lambda store: store.name_device(unknown, "kit"))
        assert box.put(told[2:]).duplicates == 0
        assert box.put(told).duplicates == len(told) == 3


def test_a_kit_whose_name_ends_as_another_s_stands_in_keeps_what_it_printed(tmp_path: Path):
    other = chunks(b"again", device=unnamed(unnamed("kit")))
    with outbox(tmp_path) as box:
        box.put(other)
        box.transact(lambda store: store.name_device(unnamed("kit"), "nrf-1"))
        assert box.put(other).duplicates == len(other)


def test_a_duplicate_whose_first_half_was_sent_is_sent_whole(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path) as box:
        box.put(message)
        box.put(message[:2])
        box.transact(lambda store: store.take("kit", ItemKind.CHUNK, Selection(100, 1 << 20)))
        box.put(message[2:])
        assert totals(box).waiting == 2 * len(message)


def test_a_duplicate_whose_first_half_has_arrived_is_sent_whole(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path) as box:
        box.put(message)
        box.put(message[:2])
        bounds = Selection(100, 1 << 20)
        sent = box.transact(lambda store: store.take("kit", ItemKind.CHUNK, bounds))
        box.transact(lambda store: store.remove_delivered([item.id for item in sent]))
        box.put(message[2:])
        assert bodies(box) == [item.body for item in message[2:]]


def test_a_message_of_which_a_chunk_was_lost_is_the_same_as_no_other(tmp_path: Path):
    first, _, *rest = chunks(bytes(range(90)))
    with outbox(tmp_path) as box:
        for _ in range(2):
            assert box.put([first, *rest]).duplicates == 0


@pytest.mark.parametrize(
    "items",
    [
        [NewItem(ItemKind.COREDUMP, "kit", b"one"), NewItem(ItemKind.COREDUMP, "kit", b"two")],
        [chunk(1), chunk(2)],
    ],
    ids=["dumps", "messages"],
)
def test_equal_items_between_two_starts_are_the_same_for_ten_minutes(
    tmp_path: Path, items: list[NewItem]
):
    clock = Clock()
    with outbox(tmp_path, clock=clock) as box:
        items = [replace(item, starts=1) for item in items]
        assert box.put(items).duplicates == 0
        clock.now += 599
        assert box.put(items).duplicates == 2
        clock.now += 2
        assert box.put(items).duplicates == 0
        again = [replace(item, starts=2) for item in items]
        assert box.put(again).duplicates == 0
        assert box.put(again).duplicates == 2


def test_a_core_dump_is_the_same_by_its_content(tmp_path: Path):
    with outbox(tmp_path) as box:
        dump = NewItem(ItemKind.COREDUMP, "kit", b"CORE...")
        assert box.put([dump]).duplicates == 0
        assert box.put([dump]).duplicates == 1


def test_a_key_is_taken_once(tmp_path: Path):
    with outbox(tmp_path) as box:
        item = NewItem(ItemKind.EVENT, "kit", b"{}", key="boot-17")
        assert box.put([item, item]).duplicates == 1
    with outbox(tmp_path) as box:
        assert box.put([item]).duplicates == 1


def test_a_key_is_known_after_a_clock_that_was_ahead_was_set_right(tmp_path: Path):
    clock = Clock()
    with outbox(tmp_path, clock=clock) as box:
        item = NewItem(ItemKind.EVENT, "kit", b"{}", key="boot-17")
        box.put([item])
        clock.now -= 2 * 86400.0
        assert box.put([item]).duplicates == 1
