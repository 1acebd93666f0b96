"""What was handed out: put back, refused, parked, sent again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.config.profile import OutboxSettings
from agent.errors import UsageError
from agent.outbox import ItemKind, NewItem, Outbox
from agent.outbox.items import Selection, unnamed
from agent.outbox.queries import OutboxDropped, drop_items
from tests.support.outbox.outboxes import (
    bodies,
    chunk,
    chunks,
    event,
    outbox,
    refused,
    spoil,
    totals,
    waiting,
)


def test_what_is_handed_out_is_not_dropped_by_hand_and_waits_again_when_put_back(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([chunk(1), chunk(2)])
        box.transact(lambda store: store.take("kit", ItemKind.CHUNK, Selection(1, 1 << 20)))
        dropped = box.transact(lambda s: drop_items(s, [], parked=False, everything=True))
        assert dropped == OutboxDropped(1, sending=1)
        box.transact(lambda store: store.release_all())
        assert bodies(box) == [chunk(1).body]


def test_an_id_of_nothing_is_named_and_then_nothing_is_dropped(tmp_path: Path):
    with outbox(tmp_path) as box:
        (known,) = box.put([chunk(1)]).ids
        ids = [known, 2**63, 17]
        with pytest.raises(UsageError, match=r"no item 9223372036854775808 and no item 17"):
            box.transact(lambda s: drop_items(s, ids, parked=False, everything=False))
        assert bodies(box) == [chunk(1).body]
        box.transact(lambda s: drop_items(s, [known], parked=False, everything=False))
        assert bodies(box) == []


def test_a_number_that_no_item_can_have_is_no_item_and_no_bound(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([chunk(1)])
        none = [2**63, 10**30, -(10**30), 0]
        assert box.transact(lambda store: store.drop(none)) == 0
        assert len(box.transact(lambda store: store.list_items(10**30))) == 1
        assert box.transact(lambda store: store.drop([*none, 1])) == 1


def test_an_item_is_parked_after_its_last_refusal_and_may_wait_again(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, park_after=3)) as box:
        box.put([chunk(1), chunk(2)])
        assert [refused(box, "why", at_fault=False) for _ in range(5)] == [False] * 5
        assert refused(box, "why" * 200)
        assert bodies(box) == [chunk(2).body]
        parked = [item.parked for item in box.transact(lambda store: store.list_items())]
        assert parked == [("why" * 200)[:500], None]
        assert box.transact(lambda store: store.retry_parked()) == 1
        assert bodies(box) == [chunk(1).body, chunk(2).body]


def test_a_request_is_bounded_by_items_and_bytes_and_holds_at_least_one(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(number) for number in range(10)])
        out = box.transact(lambda store: store.take("kit", ItemKind.EVENT, Selection(4, 1 << 20)))
        assert len(out) == 4
        out = box.transact(lambda store: store.take("kit", ItemKind.EVENT, Selection(100, 1)))
        assert len(out) == 1
        full = Selection(100, 2 * len(event(0).body))
        assert len(box.transact(lambda store: store.take("kit", ItemKind.EVENT, full))) == 2


def test_what_may_have_arrived_goes_again_as_it_went_after_a_crash_too(tmp_path: Path):
    def batch(box: Outbox, count: int = 100, *apart: int) -> list[int]:
        box.transact(lambda store: store.release_all())
        selection = Selection(count, 1 << 20, apart=frozenset(apart))
        found = box.transact(lambda store: store.next_batch("kit", ItemKind.EVENT, selection))
        return [item.id for item in found]

    with outbox(tmp_path) as box:
        box.put([event(number) for number in range(5)])
        first = batch(box, 3)
        box.put([event(5), event(6, "other")])
        assert batch(box) == first
    with outbox(tmp_path) as box:
        assert batch(box) == first
        assert batch(box, 2) == first[:2]  # it was too much at once
        box.transact(lambda store: store.remove_delivered(first[:2]))
        rest = batch(box)
        assert rest[0] == first[2]
        assert len(rest) == 4
        box.transact(lambda store: store.drop([]))
    with outbox(tmp_path) as box:
        box.transact(lambda store: store.drop(rest))  # by a person: nothing of it is there any more
        box.put([event(7), event(8), event(9)])
        probe = batch(box, 1, 8)
        assert probe == [9]
    with outbox(tmp_path) as box:
        assert batch(box) == probe  # also where an older one waits that was held apart
        box.transact(lambda store: store.remove_delivered(probe))
        assert batch(box) == [8, 10]


def test_what_one_device_may_have_sent_stays_so_whatever_arrived_of_another(tmp_path: Path):
    def batch(box: Outbox, device: str) -> list[int]:
        every = Selection(100, 1 << 20)
        found = box.transact(lambda store: store.next_batch(device, ItemKind.EVENT, every))
        return [item.id for item in found]

    with outbox(tmp_path) as box:
        box.put([event(1), event(2, "other")])
        assert (batch(box, "kit"), batch(box, "other")) == ([1], [2])
        box.put([event(3, "other")])
        box.transact(lambda store: store.release([2]))
        box.transact(lambda store: store.remove_delivered([1]))
        assert batch(box, "other") == [2]


def test_what_is_given_to_a_device_waits_in_the_order_in_which_it_came(tmp_path: Path):
    came = [event(1, unnamed("kit")), event(2), event(3, unnamed("kit"))]
    with outbox(tmp_path) as box:
        box.put(came)
        box.transact(lambda store: store.name_device(unnamed("kit"), "kit"))
        assert bodies(box, ItemKind.EVENT) == [item.body for item in came]


def test_a_body_that_changed_on_the_disk_is_parked_not_sent(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1), event(2)])
        box.transact(lambda store: spoil(store, 1))
        assert bodies(box, ItemKind.EVENT) == [event(2).body]
        assert totals(box).parked == 1
        assert totals(box).counts["unreadable"] == 1


def test_what_was_put_before_is_counted_and_not_kept_twice(tmp_path: Path):
    with outbox(tmp_path) as box:
        for duplicates in (0, 1):
            assert box.put([chunk(7)]).duplicates == duplicates
        assert totals(box).counts["duplicates"] == 1
        assert bodies(box) == [chunk(7).body]


def test_what_waits_for_the_id_of_its_device_is_given_to_it_once_and_for_all(tmp_path: Path):
    def name(box: Outbox, device: str) -> None:
        box.transact(lambda store: store.name_device(unnamed("kit"), device))

    before, after = chunks(bytes(range(60)), mtu=40, device=unnamed("kit"))
    with outbox(tmp_path) as box:
        box.put([before, event(1, unnamed("kit")), event(2, "other")])
        assert set(box.transact(lambda store: store.lanes())) == {("other", ItemKind.EVENT)}
    with outbox(tmp_path) as box:
        name(box, "first")
        box.put([after, event(3, unnamed("kit"))])
        name(box, "")  # another kit is at the port
        box.put([event(4, unnamed("kit"))])
    for turn in range(2):  # the second time after a restart alone
        with outbox(tmp_path) as box:
            if not turn:
                name(box, "second")
            sent = {
                device: [item.body for item in waiting(box, ItemKind.EVENT, device)]
                for device in ("first", "second", unnamed("kit"))
            }
            assert sent == {
                "first": [event(1).body, event(3).body],
                "second": [event(4).body],
                unnamed("kit"): [],
            }
            message = waiting(box, ItemKind.CHUNK, "first")
            assert [item.body for item in message] == [before.body, after.body]
            assert {item.message for item in message} == {message[0].id}, "one message"
            again = box.put([NewItem(ItemKind.CHUNK, "first", each.body) for each in message])
            assert again.duplicates == 2, "it is known under its name"


def test_what_waits_is_counted_by_device_with_the_time_of_its_oldest(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, park_after=1)) as box:
        box.put([chunk(1), event(2), chunk(3, "other")])
        assert refused(box, "why")  # the chunk of "kit" is parked
        found = box.transact(lambda store: store.waiting_of())
        taken = {item.device: item.captured for item in box.transact(lambda s: s.list_items())}
    assert {device: count for device, (count, _) in found.items()} == {"kit": 1, "other": 1}
    for device, (_, oldest) in found.items():
        assert datetime.fromtimestamp(oldest, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") == taken[device]


def test_what_was_refused_once_waits_after_a_restart_and_what_was_parked_does_not(tmp_path: Path):
    limits = OutboxSettings(min_free_bytes=0, park_after=2)
    for parked in (False, True):
        with outbox(tmp_path, limits) as box:
            box.put([chunk(1)])
            assert refused(box, "no") is parked
        with outbox(tmp_path, limits) as box:
            assert bodies(box) == ([] if parked else [chunk(1).body])
            assert totals(box).parked == parked
