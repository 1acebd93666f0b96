"""A job, its cloud, its kit and its download host in one folder, for the tests of updates."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.fota.journal import Journal
from agent.fota.runner import UpdateRunner
from tests.support.fota.download_server import FileServer, file_server
from tests.support.fota.file_backed_kit import FileBackedCloud, FileBackedKit, make_runner
from tests.support.fota.signed_images import signed_image

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
    def cloud(self) -> FileBackedCloud:
        return FileBackedCloud(self.folder)

    @property
    def kit(self) -> FileBackedKit:
        return FileBackedKit(self.folder)

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
