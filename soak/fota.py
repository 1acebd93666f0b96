"""Updates killed, cut, flipped and lied to: what got onto the kit, what the cloud heard."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.fota.allowed_hosts import AllowedHosts, checked_target, job_target
from agent.fota.download.downloader import Downloader, DownloadRequest
from agent.fota.download.requests import DownloadNetwork
from agent.fota.image import read_image
from agent.fota.jobs import FirmwareType, Job
from agent.fota.signatures import load_public_key
from agent.fota.verification import NotProven, TrustPolicy, check_level, prove
from agent.http.download_targets import SourceRefused, Target, checked_addresses
from tests.support.fota.download_server import Fault, file_server
from tests.support.fota.file_backed_kit import FileBackedCloud, FileBackedKit, make_runner
from tests.support.fota.fota_kills import HERE, MUST_BE_ZERO
from tests.support.fota.hostile_urls import HOSTILE_ADDRESSES, HOSTILE_JOBS, HOSTILE_REDIRECTS
from tests.support.fota.signed_images import public_pem, signed_image, signing_key
from tests.support.harness.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "fota"
SEED = 20261121


def killed(smoke: bool) -> Iterator[Row]:
    """Updates killed at each edge and at random: nothing unproven is installed."""
    count = 20 if smoke else 1000
    done = subprocess.run(
        [sys.executable, str(HERE), "--random", str(count), "--seed", str(SEED)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    control = f"{found['kills']} kills, {found['edges']} edges, seed {SEED}"
    for number, name in enumerate(MUST_BE_ZERO):
        yield Row(f"killed updates: {name.replace('_', ' ')}", found[name], "", 0, control,
                  fault="killed at any instant",
                  injected=0 if number else found["kills"])  # fmt: skip
    yield Row("killed updates: most installs of one job", found["most_installs"], "")


def flipped(smoke: bool) -> Iterator[Row]:
    """Images with one flipped bit: none is accepted."""
    count = 100 if smoke else 10_000
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key = signing_key("ecdsa")
        (folder / "key.pem").write_bytes(public_pem(key))
        path = signed_image(folder, key=key, protected=True, body=bytes(range(256)) * 4)
        whole, image = path.read_bytes(), read_image(path)
        job = Job("j", FirmwareType.APP, "h", ("p",), len(whole), "2.0.1")
        by_digest = TrustPolicy(digests=(hashlib.sha256(whole).hexdigest(),))
        by_key = TrustPolicy(key=load_public_key(folder / "key.pem"))
        for what, covered, trust in (
            ("digest", len(whole), by_digest),
            ("signature", image.hashed_bytes, by_key),
            ("hash", image.hashed_bytes, TrustPolicy()),
        ):
            accepted = 0
            for _ in range(count):
                broken = bytearray(whole)
                broken[draw.randrange(covered)] ^= 1 << draw.randrange(8)
                path.write_bytes(broken)
                try:
                    proof = prove(path, job, hashlib.sha256(broken).hexdigest(), trust)
                    check_level(proof, job.kind, trust)
                except NotProven:
                    continue
                accepted += 1
            yield Row(f"images with a flipped bit accepted by {what}", accepted, "", 0, f"{count}",
                      fault="a flipped bit", injected=count)  # fmt: skip


def lied_to(smoke: bool) -> Iterator[Row]:
    """Hostile addresses, jobs that come again and again, downloads that are cut."""
    yield from hostile()
    yield asyncio.run(offered(100))
    yield asyncio.run(cut(5 if smoke else 300))


def hostile() -> Iterator[Row]:
    public = AllowedHosts(hosts=("firmware.example.com",))
    target = checked_target("https://firmware.example.com/a", public)
    passed = 0
    tries: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        *((job_target, (host, path, public)) for host, path in HOSTILE_JOBS),
        *((checked_target, (url, public)) for url in HOSTILE_REDIRECTS),
        *((_resolved, (target, address)) for address in HOSTILE_ADDRESSES),
    ]
    for check, arguments in tries:
        try:
            check(*arguments)
        except SourceRefused:
            continue
        passed += 1
    yield Row("hostile URLs let through", passed, "", 0, f"{len(tries)} tried",
              fault="a hostile address", injected=len(tries))  # fmt: skip


def _resolved(target: Target, address: str) -> None:
    checked_addresses(target, [address], stand_in=False)


async def offered(times: int) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = signed_image(folder).read_bytes()
        async with file_server(image) as server:
            FileBackedCloud(folder).offer(
                firmwareType="APP", host=server.url, path="a", fileSize=len(image), version="2.0.1"
            )
            for _ in range(times):
                runner = make_runner(folder)
                await runner.pull()
                await runner.close()
                (folder / "reports").unlink()
        installs = len(FileBackedKit(folder).installed)
    return Row("installs of a job offered again and again", installs, "", 1, f"{times} offers")


async def cut(times: int) -> Row:
    """Cut the connection at random places: the bytes that came twice."""
    draw = random.Random(SEED)
    content = draw.randbytes(400_000)
    most = 0
    sources = AllowedHosts(hosts=(), stand_in=True)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "image.bin"
        for _ in range(times):
            faults = [Fault(cut_after=draw.randrange(1, 200_000)) for _ in range(4)]
            async with file_server(content, faults=faults) as server:
                loader = Downloader(DownloadNetwork(sources), clock=ManualClock())
                target = checked_target(f"{server.url}/a", sources)
                found = await loader.fetch(DownloadRequest(target, path, len(content)))
                await loader.close()
            assert path.read_bytes() == content
            assert found.sha256 == server.sha256
            most = max(most, found.received_bytes - len(content))
            path.unlink()
    return Row("bytes fetched twice after random cuts", most, "bytes", 65536, f"{times} x 4 cuts")


PARTS = (killed, flipped, lied_to)
