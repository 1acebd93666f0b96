"""What a pull works with, each an argument; and the two ways in which a step ends a job early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.fota.addresses import Sources
    from agent.fota.download.downloader import Clock, Downloader
    from agent.fota.installers.base import Installer
    from agent.fota.jobs import Execution, Job, Status
    from agent.fota.journal import Journal
    from agent.fota.verification import Trust


class JobSource(Protocol):
    """The device cloud, for one device."""

    async def current(self) -> Execution | None:
        """Return the pending job, None where there is none."""

    async def report(self, job_id: str, status: Status, detail: str) -> None:
        """Report a state. Raises ServiceRefusal (the job is not ours any more), Unavailable."""


class Observer:
    """Hears what is going on; this one does not listen."""

    def stage(self, text: str) -> None:
        """Hear a sentence for a person."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Hear how far it has come."""

    async def overheard(self, data: bytes) -> None:
        """Hear what the kit printed on the port that the installer had open."""


@dataclass(slots=True)
class Tools:
    """Everything that the jobs of one kit touch."""

    cloud: JobSource
    installer: Installer
    journal: Journal
    downloader: Downloader
    clock: Clock
    sources: Sources
    trust: Trust
    gate: Callable[[], Awaitable[str]]
    """Why the modem's firmware is too old, "" where it is not (clauses D1.3, D1.4)."""
    observer: Observer


class JobGone(Exception):
    """The cloud cancelled or replaced the job in the middle of the work."""


class Decided(Exception):
    """The job has its result."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def shown(job: Job) -> str:
    """Return what a job is about, for a person."""
    return f"{job.kind.value} {job.version}".strip()
