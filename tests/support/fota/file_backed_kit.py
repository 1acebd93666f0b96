"""A kit and a device cloud made of files: what they were told outlives a kill, and is counted.

`edge` is called before and after each thing that leaves the agent; it may end the process there.
"""

import asyncio
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from agent.errors import NotFound
from agent.fota.allowed_hosts import AllowedHosts
from agent.fota.clock import AsyncClock
from agent.fota.download.downloader import Downloader, DownloadLimits
from agent.fota.download.requests import DownloadNetwork
from agent.fota.image import is_mcuboot, read_image
from agent.fota.installers.base import Installer, InstallFailed, Package, RunningVersion
from agent.fota.installers.command import CommandInstaller
from agent.fota.jobs import Execution, FirmwareType, Job, JobStatus, read_execution
from agent.fota.journal import Journal
from agent.fota.kit_state import KitState
from agent.fota.releases import Component, offered_by_kit, offered_release
from agent.fota.reporter import UpdateObserver
from agent.fota.runner import Planner, UpdateRunner
from agent.fota.verification import TrustPolicy
from tests.support.cloud.kit_gates import verdict_on
from tests.support.harness.manual_clock import ManualClock


class Edges:
    """Counts the places where a kill matters, and kills at the one that is asked for."""

    def __init__(self, kill_at: int = 0) -> None:
        self.kill_at = kill_at
        self.seen = 0

    def __call__(self) -> None:
        self.seen += 1
        if self.seen == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def append_line(path: Path, value: object) -> None:
    with path.open("a") as file:
        file.write(json.dumps(value) + "\n")


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class FileBackedCloud:
    """The device cloud for one device: one job, first in a file, and what was reported of it."""

    def __init__(self, folder: Path, edge: Any = lambda: None) -> None:
        self.folder = folder
        self.edge = edge
        self.fetches = 0

    def offer(self, job_id: str = "job-1", **document: Any) -> None:
        body = {"jobId": job_id, "deviceId": "kit", "status": "QUEUED", "jobDocument": document}
        (self.folder / "offer.json").write_text(json.dumps(body))

    def cancel(self) -> None:
        (self.folder / "offer.json").unlink()

    @property
    def reports(self) -> list[list[str]]:
        """job id, status, detail."""
        return lines(self.folder / "reports")

    @property
    def statuses(self) -> list[str]:
        return [report[1] for report in self.reports]

    async def current(self) -> Execution | None:
        await asyncio.sleep(0)
        self.fetches += 1
        path = self.folder / "offer.json"
        if not path.exists():
            return None
        body = json.loads(path.read_text())
        told = [report[1] for report in self.reports if report[0] == body["jobId"]]
        if told and JobStatus(told[-1]).final:
            return None
        return read_execution({**body, "status": told[-1] if told else "QUEUED"})

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        self.edge()
        await asyncio.sleep(0)
        path = self.folder / "offer.json"
        if not path.exists() or json.loads(path.read_text())["jobId"] != job_id:
            raise NotFound(f"no job {job_id}", status=404)
        append_line(self.folder / "reports", [job_id, status.value, detail])
        self.edge()


class FileBackedService(FileBackedCloud):
    """The observability service: a release, first in a file, offered until the kit runs it."""

    def deploy(self, url: str, version: str, md5: str = "") -> None:
        artifact = {"url": f"{url}?token=of-a-test", "md5": md5, "type": "firmware"}
        release = {"version": version, "artifacts": [artifact]}
        (self.folder / "release.json").write_text(json.dumps(release))

    @staticmethod
    def is_in(folder: Path) -> bool:
        return (folder / "release.json").exists()

    async def current(self) -> Execution | None:
        await asyncio.sleep(0)
        release = json.loads((self.folder / "release.json").read_text())
        kit = self.folder / "kit.json"  # none of one that tells nothing
        runs = json.loads(kit.read_text()).get("version", "") if kit.exists() else ""
        component = Component(FirmwareType.APP, "kit", "board", "main", runs)
        results = Journal(self.folder / "fota").results
        return offered_release(release, component, results, ManualClock().now())

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        await asyncio.sleep(0)
        append_line(self.folder / "reports", [job_id, status.value, detail])


class KitsOwnCloud(FileBackedService):
    """What the kit's own client finds: an update for as long as it runs the first version."""

    @staticmethod
    def is_in(folder: Path) -> bool:
        return (folder / "by-kit").exists()

    async def current(self) -> Execution | None:
        await asyncio.sleep(0)
        journal = Journal(self.folder / "fota")
        if opened := journal.open_job:
            return Execution(opened.job_id, "kit", opened.reported, opened.document)
        kit = self.folder / "kit.json"
        runs = json.loads(kit.read_text())["version"] if kit.exists() else "1.0.0"
        if runs != "1.0.0":
            return None
        now = ManualClock().now()
        return offered_by_kit(FirmwareType.APP, "kit", runs, journal.results, now)


class FileBackedKit:
    """A kit that runs what was installed, unless `mood` says otherwise.

    Moods: good, dead (never answers again), reverts, wrong (runs something else), refuses,
    needs-confirm (goes back unless confirmed).
    """

    name = "paper"
    port = ""

    def __init__(
        self, folder: Path, edge: Any = lambda: None, *, mood: str = "good", hashes: bool = True
    ) -> None:
        self.folder = folder
        self.edge = edge
        self.mood = mood
        self.hashes = hashes
        self.types = frozenset(FirmwareType) - {FirmwareType.SOFTDEVICE}
        self.unfit = ""
        if not (folder / "kit.json").exists():
            self._keep(version="1.0.0", hash="00" * 32)

    def _keep(self, **state: Any) -> None:
        beside = self.folder / "kit.new"
        beside.write_text(json.dumps(state))
        beside.replace(self.folder / "kit.json")

    @property
    def installed(self) -> list[str]:
        """SHA-256 of each image that was installed."""
        return lines(self.folder / "installs")

    async def check(self, job: Job) -> str:
        return self.unfit

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        state = json.loads((self.folder / "kit.json").read_text())
        if state.get("dead"):
            return None
        return RunningVersion(state["version"], state["hash"] if self.hashes else "")

    async def install(self, package: Package, progress: Any) -> str:
        self.edge()
        await asyncio.sleep(0)
        if package.job.by_kit:
            if self.mood == "refuses":
                raise InstallFailed("the kit could not fetch it")
            if self.mood != "reverts":
                self._keep(version="2.0.1", hash="")
            self.edge()
            return ""
        content = package.paths[0].read_bytes()
        append_line(self.folder / "installs", hashlib.sha256(content).hexdigest())
        progress("install", len(content), len(content))
        self.edge()
        if self.mood == "refuses":
            raise InstallFailed("the kit says that the image is too large")
        if self.mood == "dead":
            self._keep(dead=True)
        elif self.mood == "wrong":
            self._keep(version="9.9.9", hash="99" * 32)
        elif self.mood != "reverts":
            self._keep(**self._names(package))
        self.edge()
        return ""

    def _names(self, package: Package) -> dict[str, str]:
        if not is_mcuboot(package.paths[0]):
            return {"version": package.version, "hash": ""}
        image = read_image(package.paths[0])
        return {"version": image.version, "hash": image.stated_hash.hex()}

    async def confirm(self, package: Package) -> None:
        self.edge()
        await asyncio.sleep(0)
        if self.mood == "needs-confirm":
            raise InstallFailed("the kit went away")
        self.edge()


class Programmer:
    """A kit that tells nothing over AT: a program puts the image on it, and reads back what runs.

    The program is one of the host's, so that a kill of the agent leaves it alone. Without `edge`s
    of its own: each begins and ends at one of the journal's.
    """

    def __init__(self, folder: Path, edge: Any = lambda: None) -> None:
        self.folder = folder
        self.edge = edge
        put = f'cat "$1" > "{folder}/board.new" && mv "{folder}/board.new" "{folder}/board"'
        words = ("sh", "-c", f"{put}; echo version: 2.0.1", "sh", "{image}")
        self._inner = CommandInstaller(words, 30.0, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def install(self, package: Package, progress: Any) -> str:
        self.edge()
        seen = await self._inner.install(package, progress)
        append_line(self.folder / "installs", hashlib.sha256(self.board).hexdigest())
        self.edge()
        return seen

    @property
    def board(self) -> bytes:
        """The image on the kit."""
        path = self.folder / "board"
        return path.read_bytes() if path.exists() else b""


class EdgedJournal(Journal):
    """A journal each of whose writes begins and ends at an edge."""

    def __init__(self, folder: Path, edge: Any) -> None:
        self.edge = edge
        super().__init__(folder)

    def _save(self, file: Any) -> None:
        self.edge()
        super()._save(file)
        self.edge()


def make_runner(
    folder: Path,
    *,
    edge: Any = lambda: None,
    mood: str = "good",
    trust: TrustPolicy | None = None,
    modem_firmware: str = "mfw_nrf91x1_2.0.4",
    observer: UpdateObserver | None = None,
    clock: AsyncClock | None = None,
    cloud: FileBackedCloud | None = None,
    installer: Installer | None = None,
    journal: Journal | None = None,
    state: KitState | None = None,
    **kit: Any,
) -> UpdateRunner:
    clock = clock or ManualClock()
    allowed = AllowedHosts(hosts=(), stand_in=True)
    if mood == "programmed":
        installer = Programmer(folder, edge)
    installer = installer or FileBackedKit(folder, edge, mood=mood, **kit)
    others = [kind for kind in (KitsOwnCloud, FileBackedService) if kind.is_in(folder)]
    return UpdateRunner(
        cloud or [*others, FileBackedCloud][0](folder, edge),
        journal or EdgedJournal(folder / "fota", edge),
        Planner(allowed, trust or TrustPolicy(), installer, verdict_on(modem_firmware)),
        Downloader(DownloadNetwork(allowed), limits=DownloadLimits(tries=2), clock=clock),
        clock=clock,
        observer=observer,
        state=state,
    )
