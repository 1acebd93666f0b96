"""The seam: what an installer is asked, in the order in which it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.errors import AgentError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.fota.jobs import FirmwareType, Job

    ProgressCallback = Callable[[str, int, int], None]
    """Told what is being done, how much of it is done, and of how much."""


class InstallFailed(AgentError):
    """The kit did not take the image, or did not keep it; the message says what was seen."""

    kind = "fota-install"


@dataclass(frozen=True, slots=True)
class RunningVersion:
    """What runs on the kit, as it says itself."""

    version: str
    image_hash: str = ""
    """MCUboot's name for the running image, hex, where the kit tells it."""
    pending: bool = False
    """Whether another image still waits for the restart that starts it."""


@dataclass(frozen=True, slots=True)
class Package:
    """An image that has proven what it must, and what must run once it is installed."""

    job: Job
    paths: tuple[Path, ...]
    url: str
    version: str
    image_hash: str = ""


class Installer(Protocol):
    """One way onto one kit. Errors of the port (AtError) pass: the job is then resumed later."""

    @property
    def name(self) -> str:
        """The name in the profile."""

    @property
    def types(self) -> frozenset[FirmwareType]:
        """What it can install at all."""

    @property
    def port(self) -> str:
        """The port that it opens itself, so that nobody else may have it open; "" for none."""

    def fetches_itself(self, job: Job) -> bool:
        """Tell whether the kit downloads this job's image itself; we then only see its size."""

    async def check(self, job: Job) -> str:
        """Return why this kit is not fit for the job now, "" where it is."""

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return what of this type runs, None while the kit does not answer."""

    async def install(self, package: Package, progress: ProgressCallback) -> None:
        """Put the image on the kit and start it. Raises InstallFailed."""

    async def confirm(self, package: Package) -> None:
        """Make the image that now runs stay, where it needs that. Raises InstallFailed."""


def runs(package: Package, running: RunningVersion, before: str) -> bool:
    """Tell whether what runs is what was installed.

    The image's hash decides where both sides know it, else the version; an image without either
    is seen only by the version having changed.
    """
    from agent.fota.image import same_version

    if package.image_hash and running.image_hash:
        return package.image_hash == running.image_hash
    if package.version:
        return same_version(package.version, running.version)
    return bool(running.version) and not same_version(running.version, before)
