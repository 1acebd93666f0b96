from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.fota.installers.base import Package, RunningVersion
from agent.fota.job_step import JobEvent, JobStep
from agent.fota.jobs import Execution, FirmwareType, JobStatus
from agent.fota.journal import MAX_INSTALL_STARTS, Journal, OpenJob
from agent.fota.kit_state import KitState
from at.found_state import FoundState
from tests.support.fota.file_backed_kit import FileBackedCloud, FileBackedKit
from tests.support.fota.update_scene import scene


@pytest.mark.parametrize("hashes", [True, False])
@pytest.mark.parametrize(
    ("mood", "words"),
    [
        ("reverts", "runs 1.0.0 as before"),
        ("wrong", "runs 9.9.9, not 2.0.1"),
        ("dead", "did not answer within 300 s"),
        ("refuses", "too large"),
        ("needs-confirm", "could not be made to stay"),
    ],
)
async def test_success_is_never_said_of_what_was_not_seen(
    tmp_path: Path, mood: str, words: str, hashes: bool
) -> None:
    async with scene(tmp_path) as here:
        result = await here.pull(mood=mood, hashes=hashes)
    assert here.cloud.statuses == ["IN_PROGRESS", "FAILED"]
    assert words in result.detail
    assert here.cloud.reports[-1][2] == result.detail


class PowerCut(Exception):
    pass


class DyingKit(FileBackedKit):
    """A kit whose every install ends in a power cut of the host."""

    async def install(self, package: Package, progress: Any) -> str:
        raise PowerCut


class Found(KitState):
    """A kit that an install takes off the network."""

    async def find(self) -> FoundState:
        return FoundState(1)

    async def put_back(self, found: FoundState) -> str:
        return f"on again, in mode {found.mode}"


async def test_a_job_that_is_given_up_amid_its_install_leaves_the_kit_as_it_was_found(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        runner = here.runner(installer=DyingKit(tmp_path), state=Found())
        with pytest.raises(PowerCut):
            await runner.pull()
        await runner.abandon("wrong image")
        await runner.close()
    assert here.cloud.reports[-1][1:] == ["FAILED", "wrong image; on again, in mode 1"]


async def test_a_reboot_loop_within_the_install_stops(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        runner = here.runner(installer=DyingKit(tmp_path))
        for _ in range(MAX_INSTALL_STARTS):
            with pytest.raises(PowerCut):
                await runner.pull()
        result = await runner.pull()
        await runner.close()
    assert result is not None
    assert result.status is JobStatus.FAILED
    assert "given up after 10 starts" in result.detail


class MuteKit(FileBackedKit):
    """A kit that tells nothing: its install alone reads back what runs, and lives no longer."""

    seen = ""

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        return RunningVersion(self.seen) if self.seen else None

    async def install(self, package: Package, progress: Any) -> str:
        await super().install(package, progress)
        self.seen = package.version
        return self.seen


class DyingJournal(Journal):
    """A journal whose process ends once the image is on the kit."""

    def advance(self, event: JobEvent, **changes: object) -> OpenJob:
        job = super().advance(event, **changes)
        if event is JobEvent.PLACE:
            raise PowerCut
        return job


async def test_what_the_install_read_back_outlives_a_kill_before_the_report(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        with pytest.raises(PowerCut):
            await here.pull(installer=MuteKit(tmp_path), journal=DyingJournal(tmp_path / "fota"))
        result = await here.pull(installer=MuteKit(tmp_path))
    assert result is not None
    assert result.status is JobStatus.SUCCEEDED
    assert len(here.kit.installed) == 1


class TamperingCloud(FileBackedCloud):
    """A device cloud that changes the image on the host's disk once it is proven."""

    async def current(self) -> Execution | None:
        journal = Journal(self.folder / "fota")
        if journal.open_job is not None and journal.open_job.step is JobStep.PROVEN:
            with journal.image_path().open("r+b") as file:
                file.write(b"evil")
        return await super().current()


async def test_an_image_changed_on_the_disk_after_its_proof_is_not_installed(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        result = await here.pull(cloud=TamperingCloud(tmp_path))
    assert result is not None
    assert result.status is JobStatus.FAILED
    assert "changed on the host's disk" in result.detail
    assert not here.kit.installed


async def test_an_install_that_an_older_version_left_to_the_kit_ends_as_failed(
    tmp_path: Path,
) -> None:
    """Its journal is in the middle of an install, and has no image."""
    async with scene(tmp_path) as here:
        offered = await here.cloud.current()
        assert offered is not None
        here.journal.begin(
            OpenJob(
                job_id=offered.job_id,
                device_id=offered.device_id,
                document=dict(offered.document),
                reported=JobStatus.IN_PROGRESS,
            )
        )
        here.journal.advance(JobEvent.START, running_before="1.0.0")
        here.journal.advance(JobEvent.PROVE, proof="size-checked at the host", version="2.0.1")
        here.journal.advance(JobEvent.INSTALL, install_starts=1)
        result = await here.pull()
    assert result is not None
    assert (result.status, here.kit.installed) == (JobStatus.FAILED, [])
    assert "the image is not on this host" in result.detail
