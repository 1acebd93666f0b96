"""The fota commands as a person calls them: a stand-in cloud, a virtual modem, real processes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import signal
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization

from agent.cli.fota import command
from agent.cli.fota.command import _exit_code, _show
from agent.cli.fota.progress import ProgressOnStderr
from agent.cli.framework.session import Session
from agent.errors import Unreachable
from agent.fota.jobs import JobStatus
from agent.fota.journal import FORMAT, JobResult
from at.commands.clock import SetClock, clock_text
from tests.support.fota.signed_images import public_pem, signed_image, signing_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.fota.reporter import UpdateObserver

DEVICE = "bench-kit-1"
GOES_ON = (
    "`cellagent fota pull --profile bench` goes on with the job, "
    "`cellagent fota abandon --profile bench` gives it up"
)
DELTA = b"\1\2\3" * 20000 + b"mfw_nrf91x1_2.0.9" + bytes(100)


async def cellagent(*words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run the command line; return its exit code, its JSON lines and standard error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


async def fota(*words: str) -> tuple[int, list[dict[str, Any]], str]:
    return await cellagent("fota", *words, "--json", "--profile", "bench")


@contextlib.asynccontextmanager
async def virtual_kit(*options: str) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "modem", "virtual", "--tcp", "127.0.0.1:0"),
        *("--dialect", "serial-modem", *options),
        stdout=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())["port"]
    finally:
        process.terminate()
        await process.communicate()


def zipped(content: bytes, kind: str, version: str) -> bytes:
    manifest = {
        "name": "test",
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": "update.bin", "type": kind, "size": len(content)}],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("update.bin", content)
        archive.writestr("manifest.json", json.dumps(manifest))
    return packed.getvalue()


class Office:
    """Who puts jobs into the stand-in, and reads what became of them."""

    def __init__(self, standin: Any) -> None:
        self.client = standin.client
        self.headers = standin.bearer("api_key")

    async def onboard(self, pem: str = "") -> None:
        pem = pem or public_pem(signing_key("ecdsa")).decode()
        row = f'{DEVICE},,,APP|MODEM,"{pem}"\n'
        headers = {**self.headers, "content-type": "text/csv"}
        await self.client.post("/v1/devices", content=row.encode(), headers=headers)
        for _ in range(100):
            found = await self.client.get(f"/v1/devices/{DEVICE}", headers=self.headers)
            if found.status_code == 200:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the stand-in did not onboard the device")

    async def offer(self, content: bytes, kind: str, version: str) -> str:
        headers = {**self.headers, "content-type": "application/zip"}
        body = zipped(content, kind, version)
        made = await self.client.post("/v1/firmwares", content=body, headers=headers)
        bundle = made.json()["uris"][0].split("/")[-2]
        made = await self.client.post(
            "/v1/fota-jobs", json={"bundleId": bundle, "deviceIds": [DEVICE]}, headers=self.headers
        )
        return str(made.json()["jobId"])

    async def seen(self, job_id: str) -> tuple[str, str]:
        path = f"/v1/fota-job-executions/{DEVICE}/{job_id}"
        found = (await self.client.get(path, headers=self.headers)).json()
        return found["status"], found["statusDetail"]


@pytest.fixture
def profile(standin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(
        '[profiles.bench]\nbase = "standin"\n'
        f'[profiles.bench.hosts]\ndevice_cloud = "{standin.urls["device_cloud"]}"\n'
        f'[profiles.bench.kit]\ndevice_id = "{DEVICE}"\n'
    )
    monkeypatch.setenv("CELLAGENT_CONFIG", str(file))
    monkeypatch.setenv("CELLAGENT_API_KEY", standin.credentials["api_key"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return file


async def stopped_in_the_download() -> list[str]:
    """Press Ctrl-C in the download of a pull; return the last two lines that it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "fota", "pull", "--profile", "bench"),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async for said in process.stderr:
        if b"downloading" in said:
            break
    process.send_signal(signal.SIGINT)
    said = await process.stderr.read()
    assert await process.wait() == 130
    return said.decode().splitlines()[-2:]


@pytest.mark.contract("C6", "D9.2")
async def test_a_job_is_checked_pulled_and_shown(
    standin: Any, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(standin)
    await office.onboard()
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300).read_bytes()
    older = signed_image(tmp_path, "1.9.0").read_bytes()
    async with virtual_kit() as port:
        monkeypatch.setenv("CELLAGENT_PORT", port)
        assert await fota("pull") == (0, [{"job": None}], "")
        job_id = await office.offer(image, "application", "v2.0.1")
        code, (plan,), _ = await fota("pull", "--dry-run")
        assert (code, plan["job"], plan["take"], plan["must_be"]) == (0, job_id, True, "intact")
        assert await office.seen(job_id) == ("QUEUED", "")
        await standin.control({"faults": ["slow-body=3600@GET /v1/firmwares/*"]})
        assert await stopped_in_the_download() == [
            "cellagent: stopped by Ctrl-C",
            f"  try: {GOES_ON}",
        ]
        await standin.control({"faults": []})
        code, (result,), err = await fota("pull")
        assert (code, result["status"], result["delivered"]) == (0, "SUCCEEDED", True), err
        assert await office.seen(job_id) == ("SUCCEEDED", result["detail"])
        assert "download [########################] 100 %" in err
        assert "SUCCEEDED" not in err, "it is the result, on standard output"
        code, (shown,), _ = await fota("status")
        assert (code, shown["device_id"], shown["open"]) == (0, DEVICE, None)
        assert shown["results"][0]["job"] == job_id
        await office.offer(older, "application", "v1.9.0")
        code, (plan,), _ = await fota("check")
        allowed = "`cellagent config set fota.allow_downgrade true --profile bench` lets it pass"
        assert (code, plan["take"], plan["try"]) == (4, False, allowed)
        code, (result,), _ = await fota("pull")
        assert (code, result["try"]) == (4, f"{allowed}; then have it offered again")
        assert await fota("abandon") == (0, [{"job": None}], "")


async def made_on_the_modem(port: str) -> str:
    """Have the modem make its key; return the public one as PEM."""
    # Its clock is set: no network tells this kit the time, and its tokens are to end.
    clock = SetClock(clock_text(datetime.now(UTC))).encode()
    words = ("modem", "at", "AT%KEYGEN=16842753,2,1", clock, "--port", port, "--json")
    code, (made, *_), err = await cellagent(*words)
    assert code == 0, err
    info = made["lines"][0].split('"')[1].split(".")[0]
    key = serialization.load_der_public_key(base64.urlsafe_b64decode(info + "=" * (-len(info) % 4)))
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


@pytest.mark.contract("C6", "D9.2", "D10.3")
async def test_a_job_is_pulled_with_tokens_that_the_modem_signs_and_no_api_key(
    standin: Any, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with profile.open("a") as file:
        file.write('[profiles.bench.credentials]\nprefer = "device-jwt"\n')
    monkeypatch.delenv("CELLAGENT_API_KEY")
    office = Office(standin)
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300).read_bytes()
    async with virtual_kit() as port:
        monkeypatch.setenv("CELLAGENT_PORT", port)
        await office.onboard(await made_on_the_modem(port))
        job_id = await office.offer(image, "application", "v2.0.1")
        code, (result,), err = await fota("pull")
        assert (code, result.get("status")) == (0, "SUCCEEDED"), (result, err)
        assert await office.seen(job_id) == ("SUCCEEDED", result["detail"])


@pytest.mark.contract("D1.4", "D1.3")
async def test_an_old_modem_gets_no_modem_image_and_the_cloud_hears_why(
    standin: Any, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(standin)
    await office.onboard()
    old = ("--model", "nrf9160", "--firmware", "mfw_nrf9160_1.2.7")
    async with virtual_kit(*old) as port:
        monkeypatch.setenv("CELLAGENT_PORT", port)
        job_id = await office.offer(DELTA, "modem", "mfw_nrf9160_1.3.6")
        code, (result,), err = await fota("pull")
        assert (code, result["status"]) == (4, "REJECTED"), err
        status, detail = await office.seen(job_id)
        assert status == "REJECTED"
        assert "1.2.7" in detail
        assert "no update over the air" in detail
        assert "before 1.3.0 to 1.3.x" in detail
        assert "download [" not in err
        monkeypatch.delenv("CELLAGENT_API_KEY")
        code, (told,), _ = await fota("pull")
        assert (code, told["error"]["kind"]) == (4, "firmware")
        assert "1.2.7" in told["error"]["message"]


def test_the_last_five_results_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {"status": "FAILED", "detail": "d", "at": "2026-03-30T12:00:00Z", "hint": "`df -h`"}
    journal = {"format": FORMAT, "results": [result | {"job_id": f"job-{n}"} for n in range(7)]}
    (tmp_path / "journal.json").write_text(json.dumps(journal))
    _show(Session(), "kit-1", tmp_path)
    said = capsys.readouterr().out
    assert [f"job-{n}" in said for n in range(7)] == [False] * 2 + [True] * 5
    assert said.count("try: `df -h`") == 5


def test_a_device_without_an_update_is_an_object_too_for_a_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _show(Session(json=True), "kit-1", tmp_path / "kit-1")
    assert json.loads(capsys.readouterr().out) == {
        "device_id": "kit-1",
        "open": None,
        "results": [],
    }
    assert not (tmp_path / "kit-1").exists()


@pytest.mark.parametrize(
    ("status", "code"),
    [("SUCCEEDED", 0), ("CANCELLED", 0), ("REJECTED", 4), ("FAILED", 1), ("TIMED_OUT", 1)],
)
def test_the_exit_code_tells_how_a_job_ended(status: str, code: int) -> None:
    ended = JobResult(job_id="job", status=JobStatus(status), detail="", at="")
    assert _exit_code(ended) == code


async def test_a_result_that_cannot_be_reported_is_shown_beside_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def unreported(_session: Session, observer: UpdateObserver, *, again: bool) -> None:
        observer.ended(JobResult(job_id="job-1", status=JobStatus.FAILED, detail="off", at=""))
        raise Unreachable("no answer")

    monkeypatch.setattr(command, "_pull", unreported)
    assert command.pull.callback is not None
    with pytest.raises(Unreachable):
        await command.pull.callback(Session(), dry_run=False, again=False)
    assert "job-1: FAILED: off" in capsys.readouterr().err


def test_the_bar_fits_a_narrow_terminal_and_tells_rate_and_time_left() -> None:
    seconds = iter([0.0, 1.0, 2.0])
    shown = ProgressOnStderr(lambda: next(seconds))
    shown.progress("download\x1b[31m", 0, 10_000_000)
    line = shown.line(2_500_000, 10_000_000, 1.0)
    assert line.endswith(" 25 %  2.5 MB/s  0:03 left")
    assert "\x1b" not in line
    assert len(shown.line(9_999_999, 10_000_000, 99999.0)) <= 79


def test_what_is_said_on_a_terminal_begins_a_line_of_its_own_behind_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    seconds = iter([1.0, 2.0])
    shown = ProgressOnStderr(lambda: next(seconds))
    shown.progress("download", 0, 2_000_000)
    shown.progress("download", 1_000_000, 2_000_000)
    shown.stage("cut off")
    shown.stage("once more")
    bar, *said = capsys.readouterr().err.splitlines()[-3:]
    assert bar.rstrip().endswith(" 50 %  1.0 MB/s  0:01 left")
    assert said == ["cut off", "once more"]
