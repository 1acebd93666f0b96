from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.fota.jobs import JobStatus
from agent.fota.reporter import UpdateObserver
from agent.fota.signatures import load_public_key
from agent.fota.verification import TrustPolicy
from tests.support.fota.signed_images import public_pem, signing_key

if TYPE_CHECKING:
    pass
from tests.support.fota.update_scene import scene


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [(b"<html>" * 30000, "REJECTED", "no whole image"), (None, "FAILED", "the job says")],
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
