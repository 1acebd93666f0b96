from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fota.job_step import JobEvent, JobStep
from agent.fota.jobs import JobStatus
from agent.fota.journal import (
    JobResult,
    JobsHeld,
    Journal,
    JournalDamaged,
    OpenJob,
    journal_folder,
    sole_worker,
)


def open_job(job_id: str = "j1") -> OpenJob:
    return OpenJob(job_id=job_id, device_id="d", document={"path": "a"})


def test_a_step_is_there_after_a_restart(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "fota")
    journal.begin(open_job())
    journal.advance(JobEvent.START, install_starts=1, reported=JobStatus.IN_PROGRESS)
    again = Journal(tmp_path / "fota").open_job
    assert again is not None
    assert (again.step, again.install_starts) == (JobStep.STARTED, 1)
    assert again.document == {"path": "a"}


def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        journal = Journal(tmp_path / "state" / "fota")
        journal.begin(open_job())
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"state": 0o700, "fota": 0o700, "journal.json": 0o600}


def test_results_are_kept_to_a_bound_and_found_by_id(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(210):
        journal.begin(open_job(f"j{number}"))
        journal.close(
            JobResult(job_id=f"j{number}", status=JobStatus.SUCCEEDED, detail="runs", at="2026")
        )
    assert len(journal.results) == 200
    assert journal.result_of("j0") is None
    journal.delivered("j209")
    found = Journal(tmp_path).result_of("j209")
    assert found is not None
    assert found.delivered
    assert journal.open_job is None


def test_images_go_with_their_job(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin(open_job())
    journal.image_path(1).write_bytes(b"x")
    result = JobResult(job_id="job-1", status=JobStatus.SUCCEEDED, detail="runs", at="2026")
    journal.close(result)
    assert not list(tmp_path.glob("image-*"))


NO_STEP = b'{"format":1,"open_job":{"job_id":"a","device_id":"d","document":{},"step":"idle"}}'


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format":1,"surprise":2}', b"\xff\xfe", NO_STEP]
)
def test_a_damaged_journal_is_set_aside_and_said(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "journal.json").write_bytes(damage)
    with pytest.raises(JournalDamaged) as caught:
        Journal(tmp_path)
    assert "journal.damaged" in caught.value.hint
    assert (tmp_path / "journal.damaged").read_bytes() == damage
    assert Journal(tmp_path).open_job is None


def test_a_journal_of_another_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "journal.json").write_bytes(b'{"format":9}')
    with pytest.raises(JournalDamaged, match="format 9"):
        Journal(tmp_path)
    assert (tmp_path / "journal.json").exists()


def test_a_step_is_synced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("sync"), fsync(handle)))
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (calls.append("rename"), replace(self, to))[1]
    )
    Journal(tmp_path).begin(open_job())
    assert calls == ["sync", "rename", "sync"]


@given(one=st.text(min_size=1, max_size=40), other=st.text(min_size=1, max_size=40))
def test_each_device_has_a_journal_of_its_own_below_the_state_folder(one: str, other: str):
    state = Path("/state")
    folders = [journal_folder(state, each) for each in (one, other)]
    assert {folder.parent for folder in folders} == {state / "fota"}
    assert all(folder.name not in {"", ".", ".."} for folder in folders)
    if max(len(folder.name) for folder in folders) < 200:
        assert (folders[0] == folders[1]) is (one == other)


async def test_a_second_worker_is_refused_until_the_first_one_ends(tmp_path: Path):
    async with sole_worker(tmp_path / "kit", patience_s=0):
        with pytest.raises(JobsHeld) as refused:
            async with sole_worker(tmp_path / "kit", patience_s=0):
                pass
    assert "until the job ends" in refused.value.hint, "the agent that has it runs for months"
    async with sole_worker(tmp_path / "kit", patience_s=0):
        pass


async def test_a_second_worker_waits_for_one_that_only_looks(tmp_path: Path):
    order = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with sole_worker(tmp_path / "kit", patience_s=0):
            begun.set()
            await go_on.wait()
            order.append("first")

    async def second() -> None:
        go_on.set()
        async with sole_worker(tmp_path / "kit", patience_s=60):
            order.append("second")

    looking = asyncio.create_task(first())
    await begun.wait()
    await asyncio.gather(looking, second())
    assert order == ["first", "second"]
