"""What an update costs: the download beside bare httpx with hashing, SMP beside smpclient alone."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from trials.measure import Row

from agent.fota.allowed_hosts import AllowedHosts, checked_target
from agent.fota.download.downloader import Downloader, DownloadRequest
from agent.fota.download.requests import DownloadNetwork
from tests.support.fota.download_server import file_server
from tests.support.fota.signed_images import signed_image, signing_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

NAME = "fota"
CPU_RATIO = 1.3
MEMORY_MB = 2.0
SMP_RATIO = 0.9
STAND_IN = AllowedHosts(hosts=(), stand_in=True)
HERE = Path(__file__).resolve()


def run(smoke: bool) -> Iterator[Row]:
    size_mb, rounds = (16, 1) if smoke else (256, 5)
    with _served(size_mb) as ports:
        found: dict[str, list[dict[str, float]]] = {"bare": [], "ours": [], "small": []}
        for _ in range(rounds):
            for how, rows in found.items():
                rows.append(_measured(how, ports[how], 1 if how == "small" else size_mb))
    cpu = {how: min(one["cpu_s"] for one in rows) for how, rows in found.items()}
    peak = {how: statistics.median(one["peak_mb"] for one in rows) for how, rows in found.items()}
    yield Row(
        f"CPU of a download with hash and file, {size_mb} MB",
        cpu["ours"] / cpu["bare"],
        "x bare httpx with hashing",
        CPU_RATIO,
        f"{cpu['ours']:.2f} s, bare {cpu['bare']:.2f} s",
    )
    yield Row(
        f"more memory for {size_mb} MB than for 1 MB",
        peak["ours"] - peak["small"],
        "MB",
        MEMORY_MB,
        f"peak {peak['ours']:.1f} MB",
    )
    yield from smp(40_000 if smoke else 400_000, 1 if smoke else 3)


def smp(size: int, rounds: int) -> Iterator[Row]:
    try:
        import smpclient  # noqa: F401 - only whether it is there
    except ImportError:
        yield Row("SMP upload", 0, "", None, skipped="pip install 'cellagent[mcuboot]'")
        return
    ours, alone = [], []
    for _ in range(rounds):
        alone.append(asyncio.run(_upload(size, _by_smpclient)))
        ours.append(asyncio.run(_upload(size, _by_us)))
    rate = {"ours": size / min(ours), "alone": size / min(alone)}
    # The goal is a least rate; a row states the most that a value may be.
    yield Row(
        "SMP upload: time beside smpclient's own",
        rate["alone"] / rate["ours"],
        "x",
        1 / SMP_RATIO,
        f"{rate['ours'] / 1000:.0f} kB/s, smpclient alone {rate['alone'] / 1000:.0f} kB/s",
    )


async def _upload(size: int, upload: Callable[[str, Path], Awaitable[float]]) -> float:
    from tests.support.fota.smp_server import smp_kit

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key = signing_key("ecdsa")
        old = signed_image(folder, "1.0.0", key=key, name="old.bin")
        new = signed_image(folder, "2.0.1", key=key, body=os.urandom(size))
        async with smp_kit(folder, old) as kit:
            return await upload(kit.port, new)


async def _by_smpclient(port: str, image: Path) -> float:
    from smpclient import SMPClient
    from smpclient.transport.serial import SMPSerialTransport

    content = image.read_bytes()  # noqa: ASYNC240 - nothing else runs
    client = SMPClient(SMPSerialTransport(), port)
    await client.connect()
    began = time.perf_counter()
    async for _ in client.upload(content):
        pass
    took = time.perf_counter() - began
    await client.disconnect()
    return took


async def _by_us(port: str, image: Path) -> float:
    from agent.fota.image import read_image
    from agent.fota.installers.base import Package
    from agent.fota.installers.mcuboot import McubootInstaller
    from agent.fota.jobs import FirmwareType, Job

    times: list[float] = []
    job = Job("j", FirmwareType.APP, "h", ("p",), image.stat().st_size, "2.0.1")  # noqa: ASYNC240
    package = Package(job, (image,), "2.0.1", read_image(image).stated_hash.hex())
    began = time.perf_counter()
    await McubootInstaller(port).install(package, lambda *_: times.append(time.perf_counter()))
    # From the port's opening to the last byte: opening is part of our rate, not of the other's.
    return times[-1] - began


class _served:  # noqa: N801 - a context manager
    """A download host in a process of its own, so that its work is not counted."""

    def __init__(self, size_mb: int) -> None:
        self._size_mb = size_mb

    def __enter__(self) -> dict[str, int]:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), "serve", str(self._size_mb)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None
        big, small = self._process.stdout.readline().split()
        return {"bare": int(big), "ours": int(big), "small": int(small)}

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _measured(how: str, port: int, size_mb: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(HERE), how, str(port), str(size_mb)],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


async def _bare(url: str) -> None:
    digest = hashlib.sha256()
    async with (
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
    ):
        async for chunk in response.aiter_raw():
            digest.update(chunk)


async def _ours(url: str, size: int, path: Path) -> None:
    loader = Downloader(DownloadNetwork(STAND_IN))
    await loader.fetch(DownloadRequest(checked_target(url, STAND_IN), path, size))
    await loader.close()


def _peak_mb() -> float:
    # VmHWM, not ru_maxrss: the latter is carried over exec from whoever started us.
    with contextlib.suppress(OSError), Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str]) -> None:
    if arguments[0] == "serve":
        asyncio.run(_serve(int(arguments[1])))
        return
    size = int(arguments[2]) * 1024 * 1024
    url = f"http://127.0.0.1:{arguments[1]}/{size}"
    # Removing the file afterwards is no part of a download.
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "image.bin"
        work = _bare(url) if arguments[0] == "bare" else _ours(url, size, path)
        before = time.process_time()
        asyncio.run(work)
        cpu = time.process_time() - before
    sys.stdout.write(json.dumps({"cpu_s": cpu, "peak_mb": _peak_mb()}))


async def _serve(size_mb: int) -> None:
    async with (
        file_server(bytes(size_mb * 1024 * 1024)) as server,
        file_server(bytes(1024 * 1024)) as small,
    ):
        sys.stdout.write(f"{server.port} {small.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
