"""The outbox: on disk before it is acknowledged, within its quota, whatever happens to its file."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import AgentError
from agent.files.trusted_places import UntrustedPlace
from agent.outbox import ItemKind, Outbox, OutboxHeld
from agent.outbox.items import Selection, unnamed
from tests.support.outbox.outboxes import LIMITS, Clock, bodies, chunk, event, outbox, waiting


@pytest.mark.contract("O5.1")
def test_what_was_put_is_there_in_order_after_a_restart(tmp_path: Path):
    items = [chunk(number) for number in range(50)]
    with outbox(tmp_path) as box:
        assert box.put(items[:20]).ids == tuple(range(1, 21))
        for item in items[20:]:
            box.put([item])
    with outbox(tmp_path) as box:
        assert bodies(box) == [item.body for item in items]
        assert box.damage is None


def test_numbers_are_never_used_twice(tmp_path: Path):
    with outbox(tmp_path) as box:
        (first,) = box.put([chunk(1)]).ids
        key = waiting(box)[0].idempotency_key
        box.transact(lambda store: store.drop([first]))
    with outbox(tmp_path) as box:
        assert box.put([chunk(2)]).ids == (first + 1,)
        assert waiting(box)[0].idempotency_key not in {"", key}


def test_the_idempotency_key_outlives_a_restart(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([event(1)])
        before = waiting(box, ItemKind.EVENT)[0].idempotency_key
    with outbox(tmp_path) as box:
        assert waiting(box, ItemKind.EVENT)[0].idempotency_key == before


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_outbox_that_others_may_write_is_refused_until_that_is_mended(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([chunk(1)])
        file = next(box.folder.glob("*.segment"))
    for place, right in ((file, 0o600), (file.parent, 0o700)):
        place.chmod(right | 0o022)
        with pytest.raises(UntrustedPlace, match=f"may change {place},"):
            outbox(tmp_path)
        place.chmod(right)
    with outbox(tmp_path) as box:  # its lock is not held by the one that was refused
        assert len(bodies(box)) == 1


def test_folder_and_files_are_private_from_the_first_moment(tmp_path: Path):
    mask = os.umask(0)
    try:
        with outbox(tmp_path) as box:
            box.put([chunk(1)])
            assert stat.S_IMODE(box.folder.stat().st_mode) == 0o700
            modes = {stat.S_IMODE(path.stat().st_mode) for path in box.folder.iterdir()}
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
            items = await box.atransact(
                lambda store, device=device: store.take(
                    device, ItemKind.CHUNK, Selection(100, 1 << 20)
                )
            )
            assert [item.body for item in items] == wanted


def test_threads_may_put_at_the_same_time(tmp_path: Path):
    with outbox(tmp_path) as box:
        threads = [threading.Thread(target=lambda at=at: box.put([event(at)])) for at in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(bodies(box, ItemKind.EVENT)) == sorted(event(at).body for at in range(16))


def test_one_callers_error_is_not_the_others(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([chunk(1)])

        def fail(store: object) -> None:
            raise ZeroDivisionError("a defect")

        with pytest.raises(ZeroDivisionError):
            box.transact(fail)
        with pytest.raises(TypeError):
            box.put([replace(chunk(1), body=cast("bytes", "\ud800"))])
        box.put([chunk(2)])
        assert bodies(box) == [chunk(1).body, chunk(2).body]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_lanes_tell_what_waits(tmp_path_factory: pytest.TempPathFactory, puts):
    folder = tmp_path_factory.mktemp("box")
    with Outbox(folder, LIMITS, clock=Clock()) as box:
        for number, (device, is_event) in enumerate(puts):
            box.put([event(number, device) if is_event else chunk(number, device)])
        lanes = box.transact(lambda store: store.lanes())
        wanted = {
            (device, ItemKind.EVENT if is_event else ItemKind.CHUNK) for device, is_event in puts
        }
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
            box.atransact(lambda store: store.take("kit", ItemKind.CHUNK, Selection(9, 1 << 20)))
        )
        await asyncio.sleep(0)
        box.submit(lambda store: store.release_all())
        await out
        assert box.transact(lambda store: store.drop([1])) == 1


async def test_an_outbox_that_closes_finishes_what_was_handed_in_and_takes_no_more(tmp_path: Path):
    box = outbox(tmp_path)
    putting = asyncio.ensure_future(box.aput([chunk(1)]))
    await asyncio.sleep(0)
    box.close()
    assert (await putting).ids == (1,)
    with pytest.raises(AgentError, match="closed"):
        await box.aput([chunk(2)])


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a folder in use is not removed")
def test_an_outbox_whose_folder_is_removed_and_made_again_goes_on_in_the_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with outbox(tmp_path) as box:
        box.put([chunk(1), chunk(2)])
        box.transact(lambda store: store.name_device(unnamed("port"), "kit"))
        shutil.rmtree(box.folder)
        with outbox(tmp_path) as another:
            another.put([chunk(4)])
            with pytest.raises(OutboxHeld):
                box.put([chunk(5)])
        box.put([chunk(6, unnamed("port"))])  # whose device is known all the same
        assert box.transact(lambda store: store.totals()).counts["unreadable"] == 2
        with pytest.raises(OutboxHeld):
            outbox(tmp_path)
    with outbox(tmp_path) as box:
        assert bodies(box) == [chunk(4).body, chunk(6, unnamed("port")).body]
    assert "was removed, and 2 items with it" in caplog.text


def test_a_disk_that_became_read_only_is_the_same_trouble_at_each_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(path: Path, _flags: int) -> int:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("agent.outbox.segments.private_opener", fail)
    with outbox(tmp_path) as box:
        said = []
        for number in range(2):
            with pytest.raises(AgentError) as raised:
                box.put([chunk(number)])
            said.append(str(raised.value))
            assert raised.value.hint.startswith(f"`findmnt -T {box.folder}` shows it")
    assert said == [f"the outbox in {box.folder} cannot be written: Read-only file system"] * 2


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a folder in use is not moved")
def test_what_a_failed_commit_left_is_forgotten_also_where_the_folder_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        box.folder.rename(tmp_path / "elsewhere")
        raise OSError(errno.EIO, "I/O error")

    with outbox(tmp_path) as box:
        box.put([chunk(1)])
        with monkeypatch.context() as patch:
            patch.setattr("agent.outbox.segments.SegmentFiles.append", fail)
            with pytest.raises(AgentError, match="cannot be written"):
                box.put([chunk(2)])
        with pytest.raises(AgentError, match="No such file"):
            box.put([chunk(2)])
        (tmp_path / "elsewhere").rename(box.folder)
        box.put([chunk(3)])
        assert bodies(box) == [chunk(1).body, chunk(3).body]
