"""A power cut, which a kill does not prove: the sync ends before the acknowledgement."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.outbox.power_cut import Event, after_cut, can_trace, lost_in_power_cuts, traced
from tests.support.outbox.power_cut import unsynced_at_acknowledgement as unsynced

pytestmark = pytest.mark.skipif(not can_trace(), reason="strace may not trace: apt install strace")


def test_the_sync_ends_before_every_acknowledgement(tmp_path: Path):
    events = traced(tmp_path / "traced", 60)
    assert sum(event.what == "ack" for event in events) == 60
    assert sum(event.what == "write" and event.path.endswith(".segment") for event in events) >= 60
    assert unsynced(events) == []


def test_nothing_acknowledged_is_lost_when_unsynced_writes_are_dropped(tmp_path: Path):
    # Seeded; `scripts/soak outbox` does a thousand.
    assert lost_in_power_cuts(tmp_path, 100, 15, random.Random(5)) == (15, 0)


def test_the_replay_would_notice_an_acknowledgement_that_comes_too_early():
    write, sync, ack = (
        Event("write", "0.segment", 0, b"abc"),
        Event("sync", "0.segment"),
        Event("ack"),
    )
    assert unsynced([write, ack, sync]) == [0]
    assert unsynced([write, sync, ack]) == []
    kept = {
        bytes(after_cut([write, ack], 2, random.Random(at)).get("0.segment", b""))
        for at in range(9)
    }
    assert kept == {b"", b"abc"}
