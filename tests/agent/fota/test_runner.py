from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.errors import NotFound, Unavailable
from agent.fota.download.ranges import DownloadInterrupted
from agent.fota.jobs import MAX_IMAGE_BYTES, JobStatus
from agent.fota.releases import ReleaseNotKept
from at.protocol.errors import FirmwareRefused
from tests.support.fota.download_server import Fault
from tests.support.fota.file_backed_kit import FileBackedCloud, FileBackedService
from tests.support.fota.update_scene import Scene, scene


@pytest.mark.contract("C6", "D9.2")
async def test_a_job_is_carried_to_a_success_that_was_seen(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        result = await here.pull()
    assert here.cloud.statuses == ["IN_PROGRESS", "SUCCEEDED"]
    assert here.kit.installed == [here.server.sha256]
    assert result.status is JobStatus.SUCCEEDED
    assert "2.0.1+0 runs; intact: " in here.cloud.reports[-1][2]
    assert "not proven: who made it" in here.cloud.reports[-1][2]
    assert not list((tmp_path / "fota").glob("image-*"))


async def test_no_job_is_an_answer(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.cloud.cancel()
        assert await here.pull() is None
    assert not here.cloud.reports


async def test_the_same_job_a_hundred_times_is_one_install(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.pull()
        (tmp_path / "reports").write_text("")
        for _ in range(99):
            result = await here.pull()
            assert result.status is JobStatus.SUCCEEDED
            (tmp_path / "reports").rename(tmp_path / "told")
    assert len(here.kit.installed) == 1


async def test_a_404_to_a_report_loses_no_job_that_the_cloud_still_offers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_report: object) -> None:
        raise NotFound("another server's answer", status=404)

    async with scene(tmp_path) as here:
        with monkeypatch.context() as patched:
            patched.setattr(FileBackedCloud, "report", lost)
            with pytest.raises(NotFound, match="another server's") as refused:
                await here.pull()
        assert "cancel it there" in refused.value.hint
        assert here.journal.open_job is not None
        result = await here.pull()
    assert result.status is JobStatus.SUCCEEDED
    assert here.cloud.statuses == ["IN_PROGRESS", "SUCCEEDED"]


async def test_a_job_that_was_taken_back_and_is_offered_again_is_carried_out(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        here.server.faults = [Fault(cut_after=70_000), *[Fault(refuse=True)] * 2]
        with pytest.raises(DownloadInterrupted):
            await here.pull()
        here.cloud.cancel()
        assert await here.pull() is None
        assert here.journal.results[-1].status is JobStatus.CANCELLED
        here.offer()
        result = await here.pull()
    assert result.status is JobStatus.SUCCEEDED
    assert len(here.kit.installed) == 1


@pytest.mark.contract("D1.4")
async def test_a_modem_job_on_an_old_modem_is_rejected_before_a_byte(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.offer(firmwareType="MODEM")
        result = await here.pull(modem_firmware="mfw_nrf9160_1.2.7")
        assert not here.server.requests
    assert here.cloud.statuses == ["REJECTED"]
    assert "no update over the air leads from modem firmware before 1.3.0" in result.detail
    assert "mfw_nrf9160_1.2.7" in result.detail
    assert "device calls" not in result.detail  # which is the other clause's reason


@pytest.mark.contract("D1.3")
@pytest.mark.parametrize("change", [{}, {"firmwareType": "TOASTER"}, {"fileSize": "many"}])
async def test_no_other_job_is_touched_in_the_name_of_an_old_modem(
    tmp_path: Path, change: dict[str, str]
) -> None:
    async with scene(tmp_path) as here:
        here.offer(**change)
        with pytest.raises(FirmwareRefused, match=r"1\.2\.7.* device calls need"):
            await here.pull(modem_firmware="mfw_nrf9160_1.2.7")
    assert not here.cloud.reports
    assert here.journal.open_job is None


@pytest.mark.contract("D1.3", "D1.4")
async def test_a_modem_that_is_refused_but_not_as_too_old_is_not_called_too_old(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        here.offer(firmwareType="MODEM")
        with pytest.raises(FirmwareRefused, match="production test image"):
            await here.pull(modem_firmware="mfw-pti_nrf91x1_2.3.8")
    assert not here.cloud.reports


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"firmwareType": "TOASTER"}, "not known"),
        ({"fileSize": "many"}, "not a number"),
        ({"host": "evil.example.com"}, "images may not come from evil.example.com"),
        ({"host": "http://169.254.169.254"}, "https only"),
        ({"path": "../../etc/passwd"}, "steps out"),
        ({"firmwareType": "SOFTDEVICE"}, "cannot install SOFTDEVICE"),
        ({"firmwareType": "CUSTOM"}, "must be verified"),
        ({"version": "v0.9.0"}, "older than the running 1.0.0"),
    ],
)
async def test_what_will_not_do_is_rejected_before_a_byte(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    async with scene(tmp_path) as here:
        here.offer(**change)
        result = await here.pull()
        assert not here.server.requests
    assert here.cloud.statuses == ["REJECTED"]
    assert words in result.detail
    assert not here.kit.installed


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"host": "images.example.com"}, "hosts images.example.com"),
        ({"firmwareType": "CUSTOM"}, "public_key_file FILE"),
        ({"version": "v0.9.0"}, "allow_downgrade true"),
    ],
)
async def test_what_lets_a_refused_job_pass_is_told_here_and_not_to_the_cloud(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    async with scene(tmp_path) as here:
        here.offer(**change)
        runner = here.runner()
        plan = await runner.plan()
        await runner.close()
        assert f"`cellagent config set fota.{key}" in plan.hint
        result = await here.pull()
    assert result.hint == f"{plan.hint}; then have it offered again"
    assert here.journal.results[-1].hint == result.hint
    assert "config set" not in str(here.cloud.reports)


async def test_a_full_disk_is_named_with_what_to_do_before_the_job_is_offered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = SimpleNamespace(free=100)
    async with scene(tmp_path) as here:
        monkeypatch.setattr("shutil.disk_usage", lambda _folder: full)
        result = await here.pull()
    assert result.status is JobStatus.FAILED
    assert result.hint.startswith("make room there")


async def test_a_version_that_already_runs_is_not_installed_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.offer(version="1.0.0")
        result = await here.pull(hashes=False)
    assert (result.status, result.hint) == (JobStatus.SUCCEEDED, "")
    assert "nothing was installed" in result.detail
    assert not here.kit.installed


async def test_a_candidate_of_a_version_is_not_taken_for_the_version(tmp_path: Path) -> None:
    (tmp_path / "kit.json").write_text('{"version": "v2.0.1-rc1", "hash": ""}')
    async with scene(tmp_path) as here:
        result = await here.pull(hashes=False)
    assert (result.status, len(here.kit.installed)) == (JobStatus.SUCCEEDED, 1)


async def test_a_host_out_of_reach_is_left_for_later_and_the_bytes_are_kept(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.server.faults = [Fault(cut_after=70_000), Fault(refuse=True), Fault(refuse=True)]
        with pytest.raises(DownloadInterrupted):
            await here.pull()
        assert here.cloud.statuses == ["IN_PROGRESS"]
        result = await here.pull()
    assert result.status is JobStatus.SUCCEEDED
    assert here.server.requests[-1]["range"] == "bytes=70000-"
    assert here.server.requests[-1]["if-range"] == '"v1"'


@pytest.mark.contract("C6")
async def test_a_host_that_asks_for_an_hour_is_left_for_later(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.server.faults = [Fault(status=503, headers={"retry-after": "3600"})]
        with pytest.raises(DownloadInterrupted) as caught:
            await here.pull()
        assert caught.value.retry_after_s == 3600.0
        assert here.cloud.statuses == ["IN_PROGRESS"]
        result = await here.pull()
    assert result.status is JobStatus.SUCCEEDED


async def test_a_host_that_stays_away_ends_the_job(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.server.default = Fault(status=503)
        for _ in range(19):
            with pytest.raises(Unavailable):
                await here.pull()
        result = await here.pull()
    assert result.status is JobStatus.TIMED_OUT
    assert "given up after 20 tries" in result.detail


async def test_plan_changes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        runner = here.runner()
        plan = await runner.plan()
        await runner.close()
        assert not here.server.requests
    assert plan is not None
    assert (plan.refusal, plan.needed, plan.running) == ("", "intact", "1.0.0")
    assert not here.cloud.reports
    assert here.journal.open_job is None


async def test_a_plan_that_refuses_for_lack_of_proof_tells_what_runs_as_well(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        here.offer(firmwareType="CUSTOM")
        runner = here.runner()
        plan = await runner.plan()
        await runner.close()
    assert plan is not None
    assert "must be verified" in plan.refusal
    assert plan.running == "1.0.0"


def deploy(here: Scene, md5: str = "", **release: str) -> None:
    here.cloud.cancel()
    service = FileBackedService(here.folder)
    service.deploy(f"{here.server.url}/app.bin", release.get("version", "2.0.1"), md5)


@pytest.mark.contract("O5.4", "C6")
async def test_a_release_is_installed_and_then_no_longer_asked_for(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        md5 = hashlib.md5(here.server.content, usedforsecurity=False).hexdigest()
        deploy(here, md5)
        result = await here.pull()
        assert here.server.requests[-1][":line"].startswith("GET /app.bin?token=of-a-test ")
        assert here.kit.installed == [here.server.sha256]
        assert await here.pull() is None
    assert result.status is JobStatus.SUCCEEDED
    assert "the release's MD5" in result.proof
    assert "token" not in result.detail
    assert len(here.kit.installed) == 1


async def test_a_file_that_is_not_the_release_s_is_not_installed(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        deploy(here, "0" * 32)
        result = await here.pull()
    assert result.status is JobStatus.REJECTED
    assert f"the release says {'0' * 32}" in result.detail
    assert here.kit.installed == []


async def test_a_release_that_the_kit_did_not_keep_is_not_installed_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        deploy(here)
        result = await here.pull(mood="reverts")
        assert result.status is JobStatus.FAILED
        for _ in range(3):
            with pytest.raises(ReleaseNotKept, match=r"2\.0\.1 was tried at"):
                await here.pull(mood="reverts")
    assert len(here.kit.installed) == 1


async def test_a_release_from_a_host_that_is_not_allowed_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        deploy(here)
        FileBackedService(tmp_path).deploy("https://elsewhere.example/app.bin", "2.0.1")
        result = await here.pull()
    assert result.status is JobStatus.REJECTED
    assert "images may not come from elsewhere.example:443" in result.detail


@pytest.mark.parametrize(
    ("fault", "size"),
    [
        (Fault(drop=frozenset({"content-length"}), chunked=True), None),
        (Fault(headers={"content-length": "0"}), 0),
        (Fault(headers={"content-length": str(MAX_IMAGE_BYTES + 1)}), MAX_IMAGE_BYTES + 1),
    ],
)
async def test_a_file_of_a_release_without_a_size_that_an_image_has_is_a_failure(
    tmp_path: Path, fault: Fault, size: int | None
) -> None:
    async with scene(tmp_path) as here:
        deploy(here)
        here.server.default = fault
        result = await here.pull()
    assert result.status is JobStatus.FAILED
    assert f"states {size} as the size" in result.detail
