"""The quota: what goes first, and what is refused."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.config.profile import OutboxSettings
from agent.errors import AgentError
from agent.outbox import ItemKind, NewItem, OutboxFull
from agent.outbox.items import Selection
from agent.outbox.quota import check_quota
from tests.support.outbox.outboxes import (
    Clock,
    bodies,
    chunk,
    chunks,
    event,
    outbox,
    refused,
    totals,
)


def test_the_oldest_go_first_and_are_counted(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_items=3)) as box:
        for number in range(5):
            box.put([chunk(number)])
        assert bodies(box) == [chunk(number).body for number in (2, 3, 4)]
        assert totals(box).counts["dropped"] == 2


def test_a_message_goes_whole(tmp_path: Path):
    message = chunks(bytes(range(90)))
    size = sum(len(item.body) for item in [*message, chunk(1)])
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_bytes=size)) as box:
        box.put(message)
        box.put([chunk(1)])
        assert len(bodies(box)) == len(message) + 1, "it is full to its last byte"
        box.put([chunk(2)])
        assert bodies(box) == [chunk(1).body, chunk(2).body]


def test_a_message_that_is_still_coming_in_does_not_go(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_items=len(message) + 1)) as box:
        box.put(message[:3])
        for number in range(20):
            box.put([event(number)])
        assert bodies(box) == [item.body for item in message[:3]]
        assert len(bodies(box, ItemKind.EVENT)) == len(message) - 2


def test_what_is_being_sent_does_not_go(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_items=2)) as box:
        box.put([chunk(1), chunk(2)])
        box.transact(lambda store: store.take("kit", ItemKind.CHUNK, Selection(2, 1 << 20)))
        with pytest.raises(OutboxFull, match="being sent"):
            box.put([chunk(3)])
        assert totals(box).counts["refused"] == 1
        assert totals(box).waiting == 2


def test_parked_items_go_before_those_that_wait(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_items=2, park_after=1)) as box:
        box.put([event(1), chunk(2)])
        assert refused(box, "no")
        box.put([chunk(3)])
        assert bodies(box, ItemKind.EVENT) == [event(1).body]
        assert bodies(box) == [chunk(3).body]


def test_what_is_too_old_goes(tmp_path: Path):
    clock = Clock()
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_age_s=100.0), clock) as box:
        box.put([chunk(1)])
        clock.now += 101
        box.put([chunk(2)])
        assert bodies(box) == [chunk(2).body]
        assert totals(box).counts["expired"] == 1
        clock.now -= 1e6  # it was set back
        box.put([chunk(3)])
        clock.now += 101
        box.put([chunk(4)])
        assert bodies(box) == [chunk(2).body, chunk(4).body]


def test_what_came_before_the_clock_was_set_is_no_older_by_that(tmp_path: Path):
    limits = OutboxSettings(min_free_bytes=0, max_age_s=7 * 86400.0)
    clock, since_boot = Clock(1000.0), Clock(5.0)
    with outbox(tmp_path, limits, clock, since_boot, "an earlier boot") as box:
        box.put([event(1)])
    with outbox(tmp_path, limits, clock, since_boot) as box:
        box.put([chunk(0)])
    with outbox(tmp_path, limits, clock, since_boot) as box:
        box.put([chunk(1)])
        clock.now = 1_790_000_000.0  # the network tells the time
        box.put([chunk(2)])
        assert bodies(box) == [chunk(0).body, chunk(1).body, chunk(2).body]
        assert totals(box).counts["expired"] == 1  # its clock may have been right
        clock.now = 1_600_000_000.0
        box.put([chunk(3)])
        for each in (clock, since_boot):
            each.now += 7 * 86400.0 + 1
        box.put([chunk(4)])
        assert bodies(box) == [chunk(4).body]


@pytest.mark.parametrize(("step_s", "expired"), [(30.0, 1), (30.5, 0)], ids=["drift", "set"])
def test_half_a_minute_of_drift_is_age_and_what_the_clock_was_set_by_is_none(
    tmp_path: Path, step_s: float, expired: int
):
    limits = OutboxSettings(min_free_bytes=0, max_age_s=98.0)
    clock, since_boot = Clock(2e9), Clock(5.0)
    with outbox(tmp_path, limits, clock, since_boot) as box:
        box.put([event(1)])
        clock.now += step_s
        for each in (clock, since_boot):
            each.now += 70
        box.put([event(2)])
        assert totals(box).counts.get("expired", 0) == expired


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted meanwhile"])
@given(steps=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_a_clock_that_is_set_makes_nothing_of_this_boot_too_old(restart: bool, steps: list[float]):
    limits = OutboxSettings(min_free_bytes=0, max_age_s=7 * 86400.0)
    clock, since_boot = Clock(2e9), Clock(5.0)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        box = stack.enter_context(outbox(Path(folder), limits, clock, since_boot))
        for number, step in enumerate(steps):
            box.put([event(number)])
            clock.now += step
            if restart:
                stack.close()
                box = stack.enter_context(outbox(Path(folder), limits, clock, since_boot))
        box.put([event(len(steps))])
        assert len(bodies(box, ItemKind.EVENT)) == len(steps) + 1
        for each in (clock, since_boot):
            each.now += 7 * 86400.0 + 100.0 * len(steps)  # of which steps below 30 s are a part
        box.put([event(99)])
        assert bodies(box, ItemKind.EVENT) == [event(99).body]


def test_the_clock_is_read_in_the_transaction_that_uses_it(tmp_path: Path):
    class Watched(Clock):
        def __call__(self) -> float:
            read.append(box._using.locked())
            return super().__call__()

    read: list[bool] = []
    with outbox(tmp_path, clock=Watched()) as box:
        box.put([event(1)])
    assert set(read) == {True}


def test_what_is_taken_leaves_the_free_space_that_must_stay(tmp_path: Path):
    limits = OutboxSettings(min_free_bytes=1000)
    check_quota(limits, 1, 500, 1500, tmp_path)
    with pytest.raises(OutboxFull, match="the disk is full"):
        check_quota(limits, 1, 501, 1500, tmp_path)


def test_nothing_is_taken_below_the_free_space_that_must_stay(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=1 << 60)) as box:
        with pytest.raises(OutboxFull, match="free on the disk"):
            box.put([chunk(1), chunk(2)])
        assert totals(box).counts["refused"] == 1, "as often as there was no room"
    with outbox(tmp_path) as box:
        # What was refused was never heard: it is no duplicate now.
        assert box.put([chunk(1)]).duplicates == 0


def test_a_folder_that_is_gone_is_no_full_disk(tmp_path: Path):
    folder = tmp_path / "outbox"
    clock = Clock(0.0)
    with outbox(folder, clock=clock) as box, pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.outbox.quota.time.monotonic", clock)
        box.put([chunk(1)])
        clock.now += 1.0
        folder.rename(tmp_path / "elsewhere")
        with pytest.raises(AgentError, match="cannot be written: No such file") as gone:
            box.put([chunk(2)])
        assert gone.value.hint.startswith(f"`mkdir -p -m 700 {box.folder}` puts back the folder")
        assert "No such file" in str(box.transact(lambda store: store.disk_trouble()))
        (tmp_path / "elsewhere").rename(folder)
        assert box.put([chunk(2)]).duplicates == 0


def test_an_item_larger_than_the_outbox_is_refused(tmp_path: Path):
    with (
        outbox(tmp_path, OutboxSettings(min_free_bytes=0, max_bytes=100)) as box,
        pytest.raises(OutboxFull, match="do not fit"),
    ):
        box.put([NewItem(ItemKind.COREDUMP, "kit", bytes(101))])
