from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from download_server import Fault, FileServer, file_server
from paper_kit import PaperCloud, PaperKit, make_runner
from signed_images import public_pem, signed_image, signing_key

from agent.errors import RefusedByRule, Unavailable
from agent.fota.download.ranges import DownloadInterrupted
from agent.fota.installers.base import Package
from agent.fota.jobs import Execution, JobStatus
from agent.fota.journal import MAX_INSTALL_STARTS, JobStep, Journal
from agent.fota.reporter import UpdateObserver
from agent.fota.runner import UpdateRunner
from agent.fota.verification import TrustPolicy, load_public_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Scene:
    folder: Path
    server: FileServer
    image: Path
    options: dict[str, Any] = field(default_factory=dict)

    def runner(self, **options: Any) -> UpdateRunner:
        return make_runner(self.folder, **{**self.options, **options})

    @property
    def cloud(self) -> PaperCloud:
        return PaperCloud(self.folder)

    @property
    def kit(self) -> PaperKit:
        return PaperKit(self.folder)

    @property
    def journal(self) -> Journal:
        return Journal(self.folder / "fota")

    def offer(self, job_id: str = "job-1", **changes: Any) -> None:
        document = {
            "firmwareType": "APP",
            "host": self.server.url,
            "path": "t/app.bin",
            "fileSize": len(self.server.content),
            "version": "v2.0.1",
        }
        self.cloud.offer(job_id, **{**document, **changes})

    async def pull(self, **options: Any) -> Any:
        runner = self.runner(**options)
        try:
            return await runner.pull()
        finally:
            await runner.close()


@asynccontextmanager
async def scene(folder: Path, content: bytes | None = None, **image: Any) -> AsyncIterator[Scene]:
    path = signed_image(folder, body=bytes(range(256)) * 800, **image)
    async with file_server(content or path.read_bytes()) as server:
        found = Scene(folder, server, path)
        found.offer()
        yield found


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


@pytest.mark.contract("D1.4")
async def test_a_modem_job_on_an_old_modem_is_rejected_before_a_byte(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.offer(firmwareType="MODEM")
        result = await here.pull(firmware_refusal="modem firmware 1.2.7 is older than 1.3.0")
        assert not here.server.requests
    assert here.cloud.statuses == ["REJECTED"]
    assert "1.2.7 is older" in result.detail


@pytest.mark.contract("D1.3")
async def test_no_other_job_is_touched_in_the_name_of_an_old_modem(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        with pytest.raises(RefusedByRule, match=r"1\.2\.7"):
            await here.pull(firmware_refusal="modem firmware 1.2.7 is older than 1.3.0")
    assert not here.cloud.reports
    assert here.journal.open_job is None


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
    ("content", "status", "words"),
    [
        (b"<html>" * 30000, "REJECTED", "no whole image"),
        (None, "FAILED", "the job says"),
    ],
)
async def test_what_arrives_wrong_is_not_installed(
    tmp_path: Path, content: bytes | None, status: str, words: str
) -> None:
    async with scene(tmp_path, content) as here:
        if content is None:
            here.offer(fileSize=17)
        result = await here.pull()
    assert here.cloud.statuses == ["IN_PROGRESS", status]
    assert words in result.detail
    assert not here.kit.installed


async def test_an_image_that_the_operators_key_did_not_sign_is_not_installed(
    tmp_path: Path,
) -> None:
    pem = tmp_path / "key.pem"
    pem.write_bytes(public_pem(signing_key("ecdsa")))
    trust = TrustPolicy(key=load_public_key(pem))
    async with scene(tmp_path, key=signing_key("ecdsa", 1)) as here:
        result = await here.pull(trust=trust)
    assert result.status is JobStatus.REJECTED
    assert not here.kit.installed
    async with scene(tmp_path, key=signing_key("ecdsa")) as here:
        here.offer("job-2")
        result = await here.pull(trust=trust)
    assert result.status is JobStatus.SUCCEEDED
    assert "verified: " in result.detail


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


async def test_a_version_that_already_runs_is_not_installed_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.offer(version="1.0.0")
        result = await here.pull(hashes=False)
    assert result.status is JobStatus.SUCCEEDED
    assert "nothing was installed" in result.detail
    assert not here.kit.installed


async def test_a_job_that_is_cancelled_is_noticed_at_the_next_tenth(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:

        class Cancelling(UpdateObserver):
            def progress(self, what: str, done: int, total: int) -> None:
                if done * 10 > total * 4 and (tmp_path / "offer.json").exists():
                    here.cloud.cancel()

        result = await here.pull(observer=Cancelling())
    assert result.status is JobStatus.CANCELLED
    assert here.cloud.statuses == ["IN_PROGRESS"]
    assert not here.kit.installed
    assert here.journal.open_job is None


async def test_the_cloud_is_asked_at_each_tenth_and_before_the_install(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        cloud = PaperCloud(tmp_path)
        await here.pull(cloud=cloud)
    assert 4 <= cloud.fetches <= 12


async def test_a_host_out_of_reach_is_left_for_later_and_the_bytes_are_kept(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        here.server.faults = [Fault(cut_after=70_000), Fault(refuse=True), Fault(refuse=True)]
        with pytest.raises(DownloadInterrupted):
            await here.pull()
        assert here.cloud.statuses == ["IN_PROGRESS"]
        result = await here.pull()
    assert result.status is JobStatus.SUCCEEDED
    assert here.server.requests[-1]["range"] == "bytes=70000-"
    assert here.server.requests[-1]["if-range"] == '"v1"'


async def test_a_host_that_stays_away_ends_the_job(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        here.server.default = Fault(status=503)
        for _ in range(19):
            with pytest.raises(Unavailable):
                await here.pull()
        result = await here.pull()
    assert result.status is JobStatus.TIMED_OUT
    assert "given up after 20 tries" in result.detail


class LosingCloud(PaperCloud):
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


class PowerCut(Exception):
    pass


class DyingKit(PaperKit):
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


class TamperingCloud(PaperCloud):
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


async def test_a_boot_job_with_two_builds_is_fetched_and_proven_whole(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        size = len(here.server.content)
        here.offer(firmwareType="BOOT", path="t/s0.bin t/s1.bin", fileSize=size * 2)
        result = await here.pull()
        assert [r[":line"].split()[1] for r in here.server.requests] == ["/t/s0.bin", "/t/s1.bin"]
        assert result.status is JobStatus.SUCCEEDED
        here.offer("job-2", firmwareType="BOOT", path="t/s0.bin t/s1.bin", fileSize=size * 3)
        result = await here.pull()
    assert result.status is JobStatus.FAILED
    assert "the files have" in result.detail


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
