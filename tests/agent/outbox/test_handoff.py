"""Items that another process hands off to the one that holds the outbox."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from agent.config.profile import OutboxSettings
from agent.errors import AgentError
from agent.outbox import ItemKind, NewItem, OutboxFull
from agent.outbox.handoff import collect, hand_off
from tests.support.outbox.outboxes import bodies, event, outbox, totals, waiting


def test_what_another_process_left_and_will_never_fit_is_set_aside_and_the_rest_passes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    small, large = OutboxSettings(min_free_bytes=0, max_bytes=100), OutboxSettings(min_free_bytes=0)
    with outbox(tmp_path, small) as box:
        folder = box.folder
        hand_off(folder, [NewItem(ItemKind.COREDUMP, "kit", bytes(101))], large, 1.0)
        hand_off(folder, [event(1)], large, 2.0)
        (folder / "inbox" / "00000000000000000000-torn.items").write_bytes(b"[{")
        assert collect(box) == 1
        assert bodies(box, ItemKind.EVENT) == [event(1).body]
        assert totals(box).counts["refused"] == 1
        assert collect(box) == 0
    assert len(list((folder / "inbox").glob("*.refused"))) == 2
    assert "do not fit an outbox of 100" in caplog.text


def test_what_another_process_left_keeps_its_time_its_key_and_its_order(tmp_path: Path):
    limits = OutboxSettings(min_free_bytes=0)
    keyed = NewItem(ItemKind.EVENT, "kit", b"{}", 1.0, "boot-17")
    with outbox(tmp_path) as box:
        hand_off(box.folder, [keyed], limits, 9.0)
        for number in range(2, 8):
            hand_off(box.folder, [event(number)], limits, float(number))
        assert collect(box) == 7
        found = [item.captured_s for item in waiting(box, ItemKind.EVENT)]
        assert found == [float(number) for number in range(1, 8)]
        hand_off(box.folder, [keyed], limits, 9.0)
        hand_off(box.folder, [replace(keyed, starts=1)], limits, 9.0)  # of the kit, after a crash
        collect(box)
        assert len(bodies(box, ItemKind.EVENT)) == 8


def test_what_two_threads_take_over_at_the_same_time_comes_once(tmp_path: Path):
    limits = OutboxSettings(min_free_bytes=0)
    with outbox(tmp_path) as box, ThreadPoolExecutor(2) as threads:
        for number in range(50):
            hand_off(box.folder, [event(number)], limits, 1.0)
        assert sum(threads.map(collect, [box, box])) == 50
        assert (totals(box).waiting, totals(box).counts) == (50, {})


@pytest.mark.parametrize(
    "limits",
    [OutboxSettings(min_free_bytes=1 << 60), OutboxSettings(min_free_bytes=0, max_bytes=1)],
    ids=["disk", "quota"],
)
def test_nothing_is_left_for_another_process_that_it_would_not_take(tmp_path: Path, limits):
    with pytest.raises(OutboxFull):
        hand_off(tmp_path, [event(1)], limits, 1.0)
    assert not list(tmp_path.iterdir())


def test_a_hand_off_that_fails_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AgentError, match="No space"):
        hand_off(tmp_path, [event(1)], OutboxSettings(min_free_bytes=0), 1.0)
    assert not list((tmp_path / "inbox").iterdir())
