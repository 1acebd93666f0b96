from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from file_backed_kit import FileBackedCloud, FileBackedKit

from agent.fota.installers.base import Package
from agent.fota.job_step import JobStep
from agent.fota.jobs import Execution, JobStatus
from agent.fota.journal import MAX_INSTALL_STARTS, Journal

if TYPE_CHECKING:
    pass
from update_scene import scene


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

    async def install(self, package: Package, progress: Any) -> None:
        raise PowerCut


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
