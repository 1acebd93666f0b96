from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.errors import AgentError, BadAnswer, EmptyAnswer, Forbidden, InvalidRequest, Unavailable
from agent.fota.jobs import Execution, JobStatus
from tests.support.fota.download_server import Fault
from tests.support.fota.file_backed_kit import FileBackedCloud

if TYPE_CHECKING:
    pass
from tests.support.fota.update_scene import scene


async def test_the_cloud_is_asked_at_each_tenth_and_before_the_install(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        cloud = FileBackedCloud(tmp_path)
        await here.pull(cloud=cloud)
    assert 4 <= cloud.fetches <= 12


class CancellingCloud(FileBackedCloud):
    """A device cloud that still hands out a job that was cancelled."""

    async def current(self) -> Execution | None:
        offered = await super().current()
        if offered is None or self.fetches == 1:
            return offered
        return replace(offered, status=JobStatus.CANCELLED)


@pytest.mark.contract("D9.2", "C6")
async def test_a_job_that_is_handed_out_as_cancelled_is_not_installed(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        result = await here.pull(cloud=CancellingCloud(tmp_path))
    assert result is not None
    assert result.status is JobStatus.CANCELLED
    assert here.cloud.statuses == ["IN_PROGRESS"]
    assert not here.kit.installed


class WrongCloud(FileBackedCloud):
    """A device cloud whose place another server takes once the job is in progress."""

    error: AgentError

    async def current(self) -> Execution | None:
        if self.fetches >= 1:
            raise self.error
        return await super().current()


@pytest.mark.parametrize(
    "error",
    [
        BadAnswer("expected JSON, got 20 bytes of text/html", status=404),
        InvalidRequest("405 Method Not Allowed", status=405),
        Forbidden("403 Forbidden", status=403),
    ],
)
async def test_what_another_server_answers_withdraws_no_job(
    tmp_path: Path, error: AgentError
) -> None:
    async with scene(tmp_path) as here:
        cloud = WrongCloud(tmp_path)
        cloud.error = error
        result = await here.pull(cloud=cloud)
    assert result is not None
    assert result.status is JobStatus.SUCCEEDED
    assert len(here.kit.installed) == 1


@pytest.mark.parametrize(
    "error",
    [
        BadAnswer("expected JSON, got 20 bytes of text/html", status=404),
        InvalidRequest("405 Method Not Allowed", status=405),
        InvalidRequest("418 I'm a teapot", status=418),
    ],
    ids=["a page", "405", "418"],
)
@pytest.mark.parametrize("reported", [JobStatus.IN_PROGRESS, JobStatus.SUCCEEDED])
async def test_a_report_that_another_server_refuses_ends_no_job_and_is_sent_again(
    tmp_path: Path, error: AgentError, reported: JobStatus
) -> None:
    class Wrong(FileBackedCloud):
        async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
            if status is reported:
                raise error
            await super().report(job_id, status, detail)

    async with scene(tmp_path) as here:
        with pytest.raises(type(error)):
            await here.pull(cloud=Wrong(tmp_path))
        await here.pull()
        assert here.cloud.statuses == ["IN_PROGRESS", "SUCCEEDED"]
    assert len(here.kit.installed) == 1


class LosingCloud(FileBackedCloud):
    """A device cloud that no final report reaches."""

    lost: list[tuple[str, str]]

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        if status.final:
            self.lost.append((status.value, detail))
            raise Unavailable("no network")
        await super().report(job_id, status, detail)


async def test_a_lost_report_is_sent_again_and_says_the_same(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        cloud = LosingCloud(tmp_path)
        cloud.lost = []
        with pytest.raises(Unavailable):
            await here.pull(cloud=cloud)
        await here.pull()
    assert [tuple(one[1:]) for one in here.cloud.reports[1:]] == cloud.lost
    assert len(here.kit.installed) == 1


async def test_a_result_that_is_refused_without_a_word_stands_in_no_later_job_s_way(
    tmp_path: Path,
) -> None:
    class Wordless(FileBackedCloud):
        async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
            if status.final:
                raise EmptyAnswer("expected JSON, got an empty body", status=404)
            await super().report(job_id, status, detail)

    async with scene(tmp_path) as here:
        result = await here.pull(cloud=Wordless(tmp_path))
        assert result is not None
        assert result.delivered
        await here.pull()  # a proxy said so: the job is still offered, and told of again
    assert here.cloud.statuses == ["IN_PROGRESS", "SUCCEEDED"]
    assert len(here.kit.installed) == 1


async def test_abandon_reports_and_clears(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.server.default = Fault(status=503)
        with pytest.raises(Unavailable):
            await here.pull()
        runner = here.runner()
        result = await runner.abandon("given up by the operator")
        await runner.close()
        assert await runner.abandon("again") is None
    assert result is not None
    assert here.cloud.reports[-1][1:] == ["FAILED", "given up by the operator"]
    assert here.journal.open_job is None
