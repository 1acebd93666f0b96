"""`cellagent report file` uploads to the stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.standin.faults import set_faults
from tests.support.cloud.observability import with_token
from tests.support.commands.command_line import json_objects as cellagent

IDENTITY = ["--device-serial", "kit-1", "--hardware-version", "nrf9161dk"]
IDENTITY += ["--software-type", "main", "--software-version", "1.0.0"]
BUG_REPORT = ("report", "file", "--kind", "bugreport")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.zip"
    path.write_bytes(bytes(1000))
    return path


@pytest.mark.contract("O5.3", "O5.6")
async def test_a_file_of_a_build_is_uploaded(online, tmp_path):
    path = tmp_path / "app.bin"
    path.write_bytes(bytes(1000))
    code, (told,), _ = await cellagent("report", "file", str(path), "--kind", "ota", *IDENTITY)
    assert (code, told["kind"], told["bytes"]) == (0, "OTA_PAYLOAD", 1000)
    code, (told,), _ = await cellagent("report", "file", str(path), "--kind", "symbols")
    assert code == 2


async def test_an_empty_file_is_not_uploaded(online, report):
    report.write_bytes(b"")
    for more in ([], ["--gzip"]):
        code, (told,), _ = await cellagent(*BUG_REPORT, str(report), *more)
        assert (code, told["error"]["message"]) == (2, f"{report} is empty")
        assert "once it has ended well" in told["error"]["try"]


@pytest.mark.contract("O5.3", "O5.6")
async def test_a_file_that_is_there_is_not_sent_again_unless_asked_to(online, report):
    _, (first,), _ = await cellagent(*BUG_REPORT, str(report))
    assert "before" not in first
    code, (second,), _ = await cellagent(*BUG_REPORT, str(report))
    assert code == 0
    assert "before" in second
    _, (third,), _ = await cellagent(*BUG_REPORT, str(report), "--again")
    assert "before" not in third
    report.write_bytes(bytes(1001))
    _, (changed,), _ = await cellagent(*BUG_REPORT, str(report))
    assert "before" not in changed


@pytest.mark.contract("O5.3", "O5.6")
async def test_an_upload_that_failed_at_its_end_says_that_it_goes_on_from_there(online, report):
    set_faults(online.cloud, ["too-many-requests=86400@POST /api/v0/upload/bugreport"])
    code, _, said = await cellagent(*BUG_REPORT, str(report))
    assert code == 6
    assert "earlier run" not in said
    set_faults(online.cloud, [])
    code, _, said = await cellagent(*BUG_REPORT, str(report))
    assert code == 0
    assert "an earlier run has sent all of it; going on from there" in said


@pytest.mark.contract("O5.3", "O5.6")
async def test_a_commit_whose_answer_was_lost_is_told_as_it_stands(online, report):
    set_faults(online.cloud, ["connection-reset=after*1@POST /api/v0/upload/bugreport"])
    for _ in range(2):
        code, (told,), _ = await cellagent(*BUG_REPORT, str(report))
        assert code == 1
        assert "the service has the file, or the upload has expired" in told["error"]["message"]
        assert "--again" in told["error"]["try"]
    caller = with_token(online)
    assert len(await caller.data("~/files")) == 1
    code, (told,), _ = await cellagent(*BUG_REPORT, str(report), "--again")
    assert (code, told["uploaded"]) == (0, "report.zip")
    assert len(await caller.data("~/files")) == 2
