"""The files of the outbox are damaged: what is whole is kept, what is lost is counted and told."""

from __future__ import annotations

import random
import shutil
import signal
import zlib
from pathlib import Path

import pytest

from agent.outbox import ItemKind, frames
from agent.outbox.items import Selection
from agent.outbox.segments import NOTES_SIZE, SEGMENT_SIZE
from agent.outbox.store import Store
from tests.support.outbox.killed_runs import killed_runs
from tests.support.outbox.outbox_damage import KINDS, Sound, make, tried
from tests.support.outbox.outboxes import bodies, chunk, chunks, event, outbox, totals, waiting


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> list[Sound]:
    folder = tmp_path_factory.mktemp("sound")
    return [make(folder / str(seed), random.Random(seed)) for seed in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_item_that_is_whole_is_kept_and_nothing_is_lost_in_silence(
    tmp_path: Path, sounds: list[Sound], kind: str
):
    # Seeded; `scripts/soak outbox` does three thousand.
    for seed in range(8):
        verdict = tried(sounds[seed % 2], kind, seed, tmp_path)
        assert (verdict.whole_lost, verdict.wrong, verdict.silent) == (0, 0, False), seed


def test_a_crc_that_is_not_compared_would_be_noticed(
    tmp_path: Path, sounds: list[Sound], monkeypatch: pytest.MonkeyPatch
):
    class NoCrc:
        crc32 = staticmethod(lambda data, value=0: 0)

    def wrong(seed: int) -> bool:
        verdict = tried(made, "many flips", seed, tmp_path)
        return bool(verdict.wrong or verdict.silent or verdict.whole_lost)

    monkeypatch.setattr(frames, "zlib", NoCrc)
    made = make(tmp_path / "without", random.Random(1))
    assert any(wrong(seed) for seed in range(8))
    assert zlib.crc32(b"1") != NoCrc.crc32(b"1")


@pytest.mark.contract("C7")
def test_no_more_of_the_disk_is_reserved_than_is_wanted(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(0)])

        def reserve(store: Store) -> tuple[int, int]:
            files = store.index.files
            files.reserve(3 * SEGMENT_SIZE // 2)
            assert files.current is not None
            wanted = files.current.end + 3 * SEGMENT_SIZE // 2 + NOTES_SIZE
            return files.current.path.stat().st_size, wanted

        size, wanted = box.transact(reserve)
        assert size == wanted


def test_the_newest_items_that_are_cut_off_are_counted_and_their_ids_are_not_given_again(
    tmp_path: Path,
):
    with outbox(tmp_path) as box:
        box.put([event(number) for number in range(40)])
        keys = {item.idempotency_key for item in waiting(box, ItemKind.EVENT)}
        entry = box.transact(lambda store: store.index.entries[31])
    path = entry.segment.path
    path.write_bytes(path.read_bytes()[: entry.offset])
    with outbox(tmp_path) as box:
        assert bodies(box, ItemKind.EVENT) == [event(number).body for number in range(30)]
        assert box.damage is not None
        assert str(box.damage).startswith("the outbox was damaged: 10 items lost, 30 items")
        assert totals(box).counts["unreadable"] == 10
        box.put([event(1000)])
        assert waiting(box, ItemKind.EVENT)[-1].idempotency_key not in keys
    with outbox(tmp_path) as box:
        assert box.damage is None


def test_a_segment_that_is_gone_is_told_also_the_only_one(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1), event(2)])
        path = box.transact(lambda store: store.index.entries[1].segment.path)
    path.unlink()
    with outbox(tmp_path) as box:
        assert bodies(box, ItemKind.EVENT) == []
        assert box.damage is not None


def test_a_file_in_which_nothing_is_a_frame_is_told_and_kept_for_a_person(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1)])
        kept = box.transact(lambda store: store.index.entries[1].segment.path)
    other = kept.with_name(kept.name.replace("-0.", "-00000007."))
    other.write_bytes(b"segments of another format")
    other.chmod(0o600)
    with outbox(tmp_path) as box:
        assert box.damage is not None
        assert bodies(box, ItemKind.EVENT) == [event(1).body]
        assert [path.name for path in box.folder.glob("*.damaged")] != []
        assert not other.exists()
    with outbox(tmp_path) as box:
        assert box.damage is None


def test_the_disk_is_given_back_and_no_delivered_item_comes_again(tmp_path: Path):
    with outbox(tmp_path) as box:
        for first in range(0, 4000, 100):
            box.put([event(number + 10**400) for number in range(first, first + 100)])
        assert len(list(box.folder.glob("*.segment"))) > 3
        box.put([chunk(1)])  # it stays, as the last of its segment
        while items := box.transact(
            lambda s: s.take("kit", ItemKind.EVENT, Selection(100, 1 << 30))
        ):
            box.transact(lambda s, items=items: s.remove_delivered([item.id for item in items]))
        assert sum(path.stat().st_size for path in box.folder.iterdir()) < 2_200_000
    with outbox(tmp_path) as box:
        assert bodies(box, ItemKind.EVENT) == []
        assert bodies(box) == [chunk(1).body]


def test_few_items_in_many_segments_are_moved_together(tmp_path: Path):
    with outbox(tmp_path) as box:
        for round_ in range(12):
            large = [event(round_ * 1000 + number + 10**4000) for number in range(120)]
            box.put([chunk(round_), *large])  # the chunk stays, alone in its segment
            items = box.transact(lambda s: s.take("kit", ItemKind.EVENT, Selection(120, 1 << 30)))
            box.transact(lambda s, items=items: s.remove_delivered([item.id for item in items]))
        assert len(list(box.folder.glob("*.segment"))) < 6
    with outbox(tmp_path) as box:
        assert bodies(box) == [chunk(round_).body for round_ in range(12)]


# It begins new segments.
KILLED = """
from tests.support.outbox.outboxes import outbox
from agent.outbox import ItemKind, NewItem
from agent.outbox.items import Selection

STEPS = ("os.rename", "os.remove", "os.truncate")

def run(folder):
    with outbox(folder) as box:
        for number in range(24):
            box.put([NewItem(ItemKind.EVENT, "kit", b"%060000d" % number)])
            os.write(1, b"+%d\\n" % number)
            if number % 3 == 2:
                (item,) = box.transact(
                    lambda s: s.take("kit", ItemKind.EVENT, Selection(1, 1 << 30))
                )
                os.write(1, b"-%d\\n" % int(item.body[-2:]))
                box.transact(lambda s: s.remove_delivered([item.id]))
"""


def test_a_kill_while_segments_come_and_go_loses_nothing(tmp_path: Path):
    with killed_runs(KILLED) as run:
        for step in range(1, 1000, 3):
            folder = tmp_path / str(step)
            code, said = run(folder, step)
            assert code in {0, -signal.SIGKILL}
            put = {int(word[1:]) for word in said if word[0] == "+"}
            sent = {int(word[1:]) for word in said if word[0] == "-"}
            with outbox(folder) as box:
                kept = [int(body[-2:]) for body in bodies(box, ItemKind.EVENT)]
                assert box.damage is None
            assert put - sent <= set(kept), step
            assert kept == sorted(kept)
            shutil.rmtree(folder)
            if code == 0:
                break
    assert (len(put), len(sent)) == (24, 8)
    assert step > 30


def test_what_one_transaction_adds_and_takes_away_again_leaves_the_others_whole(tmp_path: Path):
    message = chunks(b"\x02" + b"a message" * 9)
    with outbox(tmp_path) as box:
        box.put([*message, chunk(1), *message, chunk(2)])  # the second is a repeated export
        expected = [item.body for item in (*message, chunk(1), chunk(2))]
        assert bodies(box) == expected
    with outbox(tmp_path) as box:
        assert box.damage is None
        assert bodies(box) == expected
        box.put([chunk(3)])
        assert bodies(box) == [*expected, chunk(3).body]


def test_what_was_just_added_can_be_taken_before_it_is_written(tmp_path: Path):
    with outbox(tmp_path) as box:

        def both(store: Store) -> list[bytes]:
            store.add([chunk(1), chunk(2), chunk(3)], 0.0)
            items = store.take("kit", ItemKind.CHUNK, Selection(2, 1 << 40))
            store.remove_delivered([items[0].id])
            return [item.body for item in items]

        assert box.transact(both) == [chunk(1).body, chunk(2).body]
    with outbox(tmp_path) as box:
        assert box.damage is None
        assert bodies(box) == [chunk(2).body, chunk(3).body]
