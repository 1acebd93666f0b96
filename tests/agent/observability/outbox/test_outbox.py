"""The outbox: on disk before it is acknowledged, within its quota, whatever happens to its file."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outboxes import LIMITS, Clock, chunk, chunks, event, outbox

from agent.config.profile import Outbox as Limits
from agent.errors import AgentError
from agent.observability.chunk_codec import crc16
from agent.observability.outbox import Kind, NewItem, Outbox, OutboxFull, OutboxHeld
from agent.observability.outbox.inbox import collect, leave
from agent.observability.outbox.items import Item, Totals


def waiting(box: Outbox, kind: Kind = Kind.CHUNK, device: str = "kit") -> list[Item]:
    items = box.do(lambda store: store.hand_out(device, kind, 10**6, 1 << 40))
    box.do(lambda store: store.put_back([item.id for item in items]))
    return items


def bodies(box: Outbox, kind: Kind = Kind.CHUNK, device: str = "kit") -> list[bytes]:
    return [item.body for item in waiting(box, kind, device)]


def totals(box: Outbox) -> Totals:
    return box.do(lambda store: store.totals())


@pytest.mark.contract("O5.1")
def test_what_was_put_is_there_in_order_after_a_restart(tmp_path: Path):
    items = [chunk(number) for number in range(50)]
    with outbox(tmp_path) as box:
        assert box.put(items[:20]).ids == tuple(range(1, 21))
        for item in items[20:]:
            box.put([item])
    with outbox(tmp_path) as box:
        assert bodies(box) == [item.body for item in items]
        assert box.salvaged is None


def test_numbers_are_never_used_twice(tmp_path: Path):
    with outbox(tmp_path) as box:
        (first,) = box.put([chunk(1)]).ids
        key = waiting(box)[0].idempotency_key
        box.do(lambda store: store.delivered([first]))
    with outbox(tmp_path) as box:
        assert box.put([chunk(2)]).ids == (first + 1,)
        assert waiting(box)[0].idempotency_key not in {"", key}


def test_the_idempotency_key_outlives_a_restart(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1)])
        before = waiting(box, Kind.EVENT)[0].idempotency_key
    with outbox(tmp_path) as box:
        assert waiting(box, Kind.EVENT)[0].idempotency_key == before


def test_folder_and_files_are_private_from_the_first_moment(tmp_path: Path):
    import os

    mask = os.umask(0)
    try:
        with outbox(tmp_path) as box:
            box.put([chunk(1)])
            folder = box.path.parent
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
            assert modes == {0o600}
    finally:
        os.umask(mask)


def test_a_second_process_is_told_who_has_it(tmp_path: Path):
    import os

    with outbox(tmp_path), pytest.raises(OutboxHeld, match=str(os.getpid())):
        outbox(tmp_path)
    outbox(tmp_path).close()


def test_a_closed_outbox_takes_nothing(tmp_path: Path):
    box = outbox(tmp_path)
    box.close()
    with pytest.raises(AgentError, match="closed"):
        box.put([chunk(1)])


async def test_callers_that_wait_together_share_a_commit_and_keep_their_order(tmp_path: Path):
    with outbox(tmp_path) as box:

        async def put(device: str) -> None:
            for number in range(20):
                await box.aput([chunk(number, device)])

        await asyncio.gather(*(put(f"kit{number}") for number in range(16)))
        for number in range(16):
            device = f"kit{number}"
            wanted = [chunk(at, device).body for at in range(20)]
            items = await box.ado(
                lambda store, device=device: store.hand_out(device, Kind.CHUNK, 100, 1 << 20)
            )
            assert [item.body for item in items] == wanted


def test_threads_may_put_at_the_same_time(tmp_path: Path):
    with outbox(tmp_path) as box:
        threads = [threading.Thread(target=lambda at=at: box.put([event(at)])) for at in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(bodies(box, Kind.EVENT)) == sorted(event(at).body for at in range(16))


def test_one_callers_error_is_not_the_others(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([chunk(1)])

        def fail(store: object) -> None:
            raise ZeroDivisionError("a defect")

        with pytest.raises(ZeroDivisionError):
            box.do(fail)
        with pytest.raises(UnicodeEncodeError):
            box.put([NewItem(Kind.EVENT, "\ud800", b"")])
        box.put([chunk(2)])
        assert bodies(box) == [chunk(1).body, chunk(2).body]


# What is the same


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


def test_a_duplicate_whose_first_half_was_sent_is_sent_whole(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path) as box:
        box.put(message)
        box.put(message[:2])
        box.do(lambda store: store.hand_out("kit", Kind.CHUNK, 100, 1 << 20))
        box.put(message[2:])
        assert totals(box).waiting == 2 * len(message)


def test_a_core_dump_is_the_same_by_its_content(tmp_path: Path):
    with outbox(tmp_path) as box:
        dump = NewItem(Kind.COREDUMP, "kit", b"CORE...")
        assert box.put([dump]).duplicates == 0
        assert box.put([dump]).duplicates == 1


def test_a_key_is_taken_once(tmp_path: Path):
    with outbox(tmp_path) as box:
        item = NewItem(Kind.EVENT, "kit", b"{}", key="boot-17")
        assert box.put([item, item]).duplicates == 1
    with outbox(tmp_path) as box:
        assert box.put([item]).duplicates == 1


# The quota


def test_the_oldest_go_first_and_are_counted(tmp_path: Path):
    with outbox(tmp_path, Limits(min_free_bytes=0, max_items=3)) as box:
        for number in range(5):
            box.put([chunk(number)])
        assert bodies(box) == [chunk(number).body for number in (2, 3, 4)]
        assert totals(box).counts["dropped"] == 2


def test_a_message_goes_whole(tmp_path: Path):
    message = chunks(bytes(range(90)))
    size = sum(len(item.body) for item in message)
    with outbox(tmp_path, Limits(min_free_bytes=0, max_bytes=size + 5)) as box:
        box.put(message)
        box.put([chunk(1)])
        assert bodies(box) == [chunk(1).body]


def test_a_message_that_is_still_coming_in_does_not_go(tmp_path: Path):
    message = chunks(bytes(range(90)))
    with outbox(tmp_path, Limits(min_free_bytes=0, max_items=len(message) + 1)) as box:
        box.put(message[:3])
        for number in range(20):
            box.put([event(number)])
        assert bodies(box) == [item.body for item in message[:3]]
        assert len(bodies(box, Kind.EVENT)) == len(message) - 2


def test_what_is_being_sent_does_not_go(tmp_path: Path):
    with outbox(tmp_path, Limits(min_free_bytes=0, max_items=2)) as box:
        box.put([chunk(1), chunk(2)])
        box.do(lambda store: store.hand_out("kit", Kind.CHUNK, 2, 1 << 20))
        with pytest.raises(OutboxFull, match="being sent"):
            box.put([chunk(3)])
        assert totals(box).counts["refused"] == 1
        assert totals(box).waiting == 2


def test_parked_items_go_before_those_that_wait(tmp_path: Path):
    with outbox(tmp_path, Limits(min_free_bytes=0, max_items=2, park_after=1)) as box:
        box.put([chunk(1), chunk(2)])
        assert box.do(lambda store: store.refused(2, "no"))
        box.put([chunk(3)])
        assert bodies(box) == [chunk(1).body, chunk(3).body]


def test_what_is_too_old_goes(tmp_path: Path):
    clock = Clock()
    with outbox(tmp_path, Limits(min_free_bytes=0, max_age_s=100.0), clock) as box:
        box.put([chunk(1)])
        clock.now += 101
        box.put([chunk(2)])
        assert bodies(box) == [chunk(2).body]
        assert totals(box).counts["expired"] == 1


def test_what_came_before_the_clock_was_set_is_no_older_by_that(tmp_path: Path):
    limits = Limits(min_free_bytes=0, max_age_s=7 * 86400.0)
    clock, since_boot = Clock(1000.0), Clock(5.0)
    with outbox(tmp_path, limits, clock, since_boot) as box:
        box.put([event(1)])
    with outbox(tmp_path, limits, clock, since_boot) as box:
        box.put([chunk(1)])
        clock.now = 1_790_000_000.0  # the network tells the time
        box.put([chunk(2)])
        assert bodies(box) == [chunk(1).body, chunk(2).body]
        assert totals(box).counts["expired"] == 1  # what was taken by an earlier process
        clock.now = 1_600_000_000.0
        box.put([chunk(3)])
        for each in (clock, since_boot):
            each.now += 7 * 86400.0 + 1
        box.put([chunk(4)])
        assert bodies(box) == [chunk(4).body]


def test_nothing_is_taken_below_the_free_space_that_must_stay(tmp_path: Path):
    with outbox(tmp_path, Limits(min_free_bytes=1 << 60)) as box:
        with pytest.raises(OutboxFull, match="free on the disk"):
            box.put([chunk(1)])
        assert totals(box).counts["refused"] == 1
    with outbox(tmp_path) as box:
        # What was refused was never heard: it is no duplicate now.
        assert box.put([chunk(1)]).duplicates == 0


def test_an_item_larger_than_the_outbox_is_refused(tmp_path: Path):
    with (
        outbox(tmp_path, Limits(min_free_bytes=0, max_bytes=100)) as box,
        pytest.raises(OutboxFull, match="do not fit"),
    ):
        box.put([NewItem(Kind.COREDUMP, "kit", bytes(101))])


def test_what_another_process_left_and_will_never_fit_is_set_aside_and_the_rest_passes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    small, large = Limits(min_free_bytes=0, max_bytes=100), Limits(min_free_bytes=0)
    with outbox(tmp_path, small) as box:
        folder = box.path.parent
        leave(folder, [NewItem(Kind.COREDUMP, "kit", bytes(101))], large, 1.0)
        leave(folder, [event(1)], large, 2.0)
        (folder / "inbox" / "00000000000000000000-torn.items").write_bytes(b"[{")
        assert collect(box) == 1
        assert bodies(box, Kind.EVENT) == [event(1).body]
        assert totals(box).counts["refused"] == 1
        assert collect(box) == 0
    assert len(list((folder / "inbox").glob("*.refused"))) == 2
    assert "do not fit an outbox of 100" in caplog.text


@pytest.mark.parametrize(
    "limits",
    [Limits(min_free_bytes=1 << 60), Limits(min_free_bytes=0, max_bytes=1)],
    ids=["disk", "quota"],
)
def test_nothing_is_left_for_another_process_that_it_would_not_take(tmp_path: Path, limits):
    with pytest.raises(OutboxFull):
        leave(tmp_path, [event(1)], limits, 1.0)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_a_named_error_and_takes_nothing(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1)])
        pages = "PRAGMA page_count"
        (count,) = box.do(lambda store: store.tables.db.execute(pages).fetchone())
        box.do(lambda store: store.tables.db.execute(f"PRAGMA max_page_count={count}").fetchone())
        with pytest.raises(OutboxFull, match="disk is full"):
            box.put([NewItem(Kind.EVENT, "kit", bytes(100_000))])
        box.do(lambda store: store.tables.db.execute("PRAGMA max_page_count=100000").fetchone())
        box.put([event(2)])
        assert bodies(box, Kind.EVENT) == [event(1).body, event(2).body]


# Settling


def test_what_is_handed_out_is_not_dropped_by_hand_and_waits_again_when_put_back(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([chunk(1), chunk(2)])
        box.do(lambda store: store.hand_out("kit", Kind.CHUNK, 1, 1 << 20))
        assert box.do(lambda store: store.drop([1, 2])) == 1
        box.do(lambda store: store.put_back_all())
        assert bodies(box) == [chunk(1).body]


def test_an_item_is_parked_after_its_last_refusal_and_may_wait_again(tmp_path: Path):
    with outbox(tmp_path, Limits(min_free_bytes=0, park_after=3)) as box:
        box.put([chunk(1), chunk(2)])
        assert [box.do(lambda store: store.refused(1, "why")) for _ in range(3)] == [
            False,
            False,
            True,
        ]
        assert bodies(box) == [chunk(2).body]
        assert [item.parked for item in box.do(lambda store: store.listed())] == ["why", ""]
        assert box.do(lambda store: store.retry_parked()) == 1
        assert bodies(box) == [chunk(1).body, chunk(2).body]


def test_a_request_is_bounded_by_items_and_bytes_and_holds_at_least_one(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(number) for number in range(10)])
        out = box.do(lambda store: store.hand_out("kit", Kind.EVENT, 4, 1 << 20))
        assert len(out) == 4
        out = box.do(lambda store: store.hand_out("kit", Kind.EVENT, 100, 1))
        assert len(out) == 1


def test_what_may_have_arrived_goes_again_as_it_went_after_a_crash_too(tmp_path: Path):
    def batch(box: Outbox, count: int = 100) -> list[int]:
        found = box.do(lambda store: store.next_batch("kit", Kind.EVENT, count, 1 << 20))
        return [item.id for item in found]

    with outbox(tmp_path) as box:
        box.put([event(number) for number in range(5)])
        first = batch(box, 3)
        box.do(lambda store: store.put_back_all())
        box.put([event(5), event(6, "other")])
        assert batch(box) == first
    with outbox(tmp_path) as box:
        assert batch(box) == first
        assert batch(box, 2) == first[:2]  # it was too much at once
        box.do(lambda store: store.delivered(first[:2]))
        rest = batch(box)
        assert rest[0] == first[2]
        assert len(rest) == 4
        box.do(lambda store: store.drop([]))
    with outbox(tmp_path) as box:
        box.do(lambda store: store.drop(rest))  # by a person: nothing of it is there any more
        box.put([event(7), event(8)])
        assert len(batch(box)) == 2


# Damage


def test_a_damaged_file_is_set_aside_and_what_reads_is_salvaged(tmp_path: Path):
    items = [event(number) for number in range(500)]
    with outbox(tmp_path) as box:
        box.put(items)
        path = box.path
    data = bytearray(path.read_bytes())
    assert len(data) > 5 * 4096
    data[3 * 4096 : 3 * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    with outbox(tmp_path) as box:
        assert box.salvaged is not None
        found = bodies(box, Kind.EVENT)
        assert set(found) <= {item.body for item in items}
        assert len(found) >= 100
        assert totals(box).counts["damaged_files"] == 1
        box.put([event(1000)])
    assert list(path.parent.glob("*.damaged-*"))
    with outbox(tmp_path) as box:
        assert bodies(box, Kind.EVENT) == [*found, event(1000).body]


# Kills itself at a given one of the steps in which files are opened, renamed and removed.
KILLED_START = """
import os, sys
sys.path[:0] = ["tests/support"]
from pathlib import Path
from outboxes import outbox
left = int(sys.argv[2])
def at_step(name, arguments):
    global left
    opened = name == "open" and "outbox.sqlite" in str(arguments[0])
    if opened or name in ("os.rename", "os.remove", "sqlite3.connect"):
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)
sys.addaudithook(at_step)
outbox(Path(sys.argv[1])).close()
"""


def test_a_start_that_is_killed_while_it_salvages_is_gone_on_with(tmp_path: Path):
    with outbox(tmp_path / "as it was") as box:
        box.put([event(number) for number in range(500)])
        path = box.path
    data = bytearray(path.read_bytes())
    data[3 * 4096 : 3 * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    for step in range(1, 100):
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "as it was", folder)
        child = [sys.executable, "-c", KILLED_START, str(folder), str(step)]
        code = subprocess.run(child, check=False).returncode
        with outbox(folder) as box:
            assert totals(box).waiting >= 100, step
        names = {each.name.split("-")[0] for each in (folder / "state").iterdir()}
        assert names == {"outbox.sqlite", "outbox.sqlite.lock", "outbox.sqlite.damaged"}
        if code == 0:
            break
    assert step > 5


@pytest.mark.parametrize("content", [b"", b"no database at all", b"\0" * 8192])
def test_a_file_that_is_no_outbox_does_not_stop_the_start(tmp_path: Path, content: bytes):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "outbox.sqlite").write_bytes(content)
    with outbox(tmp_path) as box:
        box.put([event(1)])


def test_a_database_of_something_else_is_set_aside(tmp_path: Path):
    (tmp_path / "state").mkdir()
    connection = sqlite3.connect(tmp_path / "state" / "outbox.sqlite")
    connection.execute("CREATE TABLE notes(text)")
    connection.close()
    with outbox(tmp_path) as box:
        assert box.salvaged == 0


def test_no_random_damage_stops_a_start_or_brings_wrong_bytes(tmp_path: Path):
    # Seeded; `scripts/soak outbox` does a thousand.
    dice = random.Random(7)
    items = [event(number) for number in range(200)]
    with outbox(tmp_path) as box:
        box.put(items)
        path = box.path
    sound = path.read_bytes()
    wanted = {item.body for item in items}
    for round_ in range(25):
        data = bytearray(sound)
        for _ in range(dice.choice([1, 10, 100])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        if round_ % 5 == 0:
            del data[dice.randrange(len(data)) :]
        for part in path.parent.iterdir():
            part.unlink()
        path.write_bytes(data)
        with outbox(tmp_path) as box:
            assert set(bodies(box, Kind.EVENT)) <= wanted
            box.put([event(9999)])


def test_a_body_that_changed_on_the_disk_is_parked_not_sent(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1), event(2)])
        box.do(lambda store: store.tables.db.execute("UPDATE items SET body = x'00' WHERE id = 1"))
        assert bodies(box, Kind.EVENT) == [event(2).body]
        assert totals(box).parked == 1
        assert totals(box).counts["unreadable"] == 1


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path):
    program = (
        "import sys; sys.path[:0] = ['tests/support']\n"
        "from pathlib import Path; from outboxes import outbox, chunk\n"
        "box = outbox(Path(sys.argv[1])); start = int(sys.argv[2])\n"
        "for number in range(start, start + 10**6):\n"
        "    box.put([chunk(number)]); print(number, flush=True)\n"
    )
    heard: list[int] = []
    for _ in range(3):
        start = (heard[-1] + 1) if heard else 0
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), str(start)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        heard += [int(child.stdout.readline()) for _ in range(50)]
        child.kill()
        heard += [int(line) for line in child.stdout.read().splitlines() if line.isdigit()]
        child.stdout.close()
        child.wait()
    with outbox(tmp_path) as box:
        kept = [int.from_bytes(body[2:10], "little") for body in bodies(box)]
    assert set(heard) <= set(kept)
    assert kept == sorted(kept)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_lanes_tell_what_waits(tmp_path_factory: pytest.TempPathFactory, puts):
    folder = tmp_path_factory.mktemp("box")
    with Outbox(folder, LIMITS, clock=Clock()) as box:
        for number, (device, is_event) in enumerate(puts):
            box.put([event(number, device) if is_event else chunk(number, device)])
        lanes = box.do(lambda store: store.lanes())
        wanted = {(device, Kind.EVENT if is_event else Kind.CHUNK) for device, is_event in puts}
        assert set(lanes) == wanted


def test_one_loop_after_another_may_use_it(tmp_path: Path):
    with outbox(tmp_path) as box:

        async def leave() -> None:
            task = asyncio.ensure_future(box.aput([chunk(0)]))
            await asyncio.sleep(0)
            task.cancel()

        for number in range(1, 4):
            asyncio.run(leave())
            asyncio.run(box.aput([chunk(number)]))
        assert {chunk(number).body for number in range(1, 4)} <= set(bodies(box))


async def test_what_is_handed_in_comes_after_what_was_awaited_before(tmp_path: Path):
    with outbox(tmp_path) as box:
        await box.aput([chunk(1)])
        out = asyncio.ensure_future(
            box.ado(lambda store: store.hand_out("kit", Kind.CHUNK, 9, 1 << 20))
        )
        await asyncio.sleep(0)
        box.hand_in(lambda store: store.put_back_all())
        await out
        assert box.do(lambda store: store.drop([1])) == 1


async def test_an_outbox_that_closes_tells_who_waits(tmp_path: Path):
    box = outbox(tmp_path)
    putting = asyncio.ensure_future(box.aput([chunk(1)]))
    await asyncio.sleep(0)
    box.close()
    with pytest.raises(AgentError, match="closed"):
        await putting
