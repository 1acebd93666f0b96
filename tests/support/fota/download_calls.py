"""A downloader and the file that it is to fetch, for the tests of downloads."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.fota.allowed_hosts import AllowedHosts, checked_target
from agent.fota.download.downloader import (
    DownloadedFile,
    Downloader,
    DownloadLimits,
    DownloadRequest,
)
from agent.fota.download.requests import DownloadNetwork
from tests.support.fota.download_server import FileServer
from tests.support.harness.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


CONTENT = hashlib.shake_128(b"image").digest(300_000)


STAND_IN = AllowedHosts(hosts=(), stand_in=True)


@asynccontextmanager
async def downloader(**limits: Any) -> AsyncIterator[Downloader]:
    loader = Downloader(
        DownloadNetwork(STAND_IN), limits=DownloadLimits(**limits), clock=ManualClock()
    )
    try:
        yield loader
    finally:
        await loader.close()


def wanted(server: FileServer, folder: Path, **options: Any) -> DownloadRequest:
    target = checked_target(f"{server.url}/t/app.bin", STAND_IN)
    return DownloadRequest(
        **{"target": target, "path": folder / "image.bin", "size_bytes": len(CONTENT), **options}
    )


async def fetched(server: FileServer, folder: Path, **options: Any) -> DownloadedFile:
    async with downloader() as loader:
        return await loader.fetch(wanted(server, folder, **options))


def is_whole(folder: Path, content: bytes = CONTENT) -> bool:
    return (folder / "image.bin").read_bytes() == content
