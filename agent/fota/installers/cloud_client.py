"""Updates by a kit's own cloud client: it finds the image, downloads and checks it.

#XNRFCLOUDFOTA of Serial Modem 2.0, %NRFCLOUDFOTA of the nRF93M1. This host watches: a command is
answered at once, and the rest comes as notices.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agent.errors import ConfigError, DeadlineExceeded, ResourceUnavailable
from agent.fota.installers.base import (
    Installer,
    InstallFailed,
    Package,
    ProgressCallback,
    RunningVersion,
    lost_by_restart,
    restart,
    why_untold,
)
from agent.fota.jobs import MODEM_TYPES, FirmwareType, Job
from at.commands.nrf93m1.update import MODEM_CHECK, MODEM_UPDATE, UpdateByModule, UpdateNotice
from at.commands.serial_modem.cloud import ReadCloudState
from at.commands.serial_modem.cloud_update import AVAILABLE, UpdateByCloud, UpdateCheck
from at.commands.serial_modem.firmware_update import UpdateProgress
from at.driver.modem import Modem
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected
from at.protocol.notices import Notice

_CHECK_S = 120.0
_UPDATE_S = 1800.0
_RESTART_S = 120.0
_LOOK_S = 30.0
_CANCEL = 0
_UPDATE = {FirmwareType.APP: 1, FirmwareType.MODEM: 2}
_ONLY_CHECK = {FirmwareType.APP: 4, FirmwareType.MODEM: 6}
N = TypeVar("N")
_OK, _TO_BE_ACTIVATED = 0, 4
_CAUSES = {1: "its download failed", 2: "it rejected the image", 3: "the image is of another type"}


class CloudClient(Protocol):
    """The cloud client of a kit. Every method raises at.AtError."""

    @property
    def modem(self) -> Modem:
        """The modem that has it."""

    @property
    def types(self) -> frozenset[FirmwareType]:
        """What it updates."""

    async def has_update(self, kind: FirmwareType) -> bool:
        """Return whether its cloud has an update. Raises ResourceUnavailable, DeadlineExceeded."""

    async def update(self, kind: FirmwareType, progress: ProgressCallback) -> None:
        """Make it download and apply the update. Raises InstallFailed, DeadlineExceeded."""


def cloud_client_of(modem: Modem, project_key: str, modem_project_key: str) -> CloudClient | None:
    """Return the kit's cloud client, None where it has none that is known."""
    if modem.dialect.traits.is_module:
        return ModuleClient(modem, modem_project_key)
    if modem.dialect is Dialect.SERIAL_MODEM:
        return SerialModemClient(modem, project_key, modem_project_key)
    return None


@dataclass(frozen=True, slots=True)
class SerialModemClient:
    """#XNRFCLOUDFOTA, with the key of each project where the profile has one."""

    modem: Modem
    project_key: str
    modem_project_key: str
    types: frozenset[FirmwareType] = frozenset(_UPDATE)

    async def has_update(self, kind: FirmwareType) -> bool:
        """Return what a check tells; it needs a session that is open."""
        if not (await self.modem.send(ReadCloudState())).ready:
            raise ResourceUnavailable(
                "the kit has no session with its cloud, in which it would look for an update",
                hint="`cellagent modem at AT#XNRFCLOUD=1`",
            )
        with self.modem.notices("#XNRFCLOUDFOTA") as notices:
            await self.modem.send(UpdateByCloud(_ONLY_CHECK[kind], self._key(kind)))
            async with _within(_CHECK_S, "its check for an update"):
                async for notice in notices:
                    if isinstance(found := _value(notice), UpdateCheck):
                        return found.result == AVAILABLE
        return False

    async def update(self, kind: FirmwareType, progress: ProgressCallback) -> None:
        """Download and start it; a download that goes on since before is begun anew."""
        restarts = self.modem.restarts
        with self.modem.notices("#XNRFCLOUDFOTA") as notices:
            begin = UpdateByCloud(_UPDATE[kind], self._key(kind))
            began = await _accepted(self.modem, begin)
            if not began:
                await _accepted(self.modem, UpdateByCloud(_CANCEL))
                began = await _accepted(self.modem, begin)
            # Refused twice, it is downloaded already, perhaps: the restart shows.
            if began:
                async with _within(_UPDATE_S, "its update"):
                    await self._follow(_told(self.modem, notices, restarts), progress)
        await restart(self.modem, kind, _RESTART_S)

    async def _follow(self, notices: AsyncIterator[Notice], progress: ProgressCallback) -> None:
        async for notice in notices:
            value = _value(notice)
            if isinstance(value, UpdateCheck) and value.result != AVAILABLE:
                raise InstallFailed(f"the kit's cloud has no update now: {notice.line}")
            if not isinstance(value, UpdateProgress):
                continue
            if value.status != _OK:
                cause = _CAUSES.get(value.info or 0, notice.line)
                raise InstallFailed(f"the kit could not fetch it: {cause}")
            progress("download by the kit", value.info or 0, 100)
            if value.stage == _TO_BE_ACTIVATED:
                return

    def _key(self, kind: FirmwareType) -> str | None:
        return (self.modem_project_key if kind in MODEM_TYPES else self.project_key) or None


@dataclass(frozen=True, slots=True)
class ModuleClient:
    """%NRFCLOUDFOTA: the module's own firmware; it restarts by itself."""

    modem: Modem
    modem_project_key: str
    types: frozenset[FirmwareType] = frozenset({FirmwareType.MODEM})

    async def has_update(self, kind: FirmwareType) -> bool:  # noqa: ARG002 - it has one kind
        """Return what a check tells. Raises also ConfigError: it asks by the project's key."""
        if not self.modem_project_key:
            raise ConfigError(
                "an nRF93M1 asks for its firmware by the key of the project that has it",
                hint="`cellagent config set modem_project_key`",
            )
        with self.modem.notices(UpdateNotice) as notices:
            await self.modem.send(UpdateByModule(MODEM_CHECK, self.modem_project_key))
            async with _within(_CHECK_S, "its check for an update"):
                async for notice in notices:
                    if notice.value.step in {"UPDATE_AVAILABLE", "NO_UPDATE"}:
                        return notice.value.step == "UPDATE_AVAILABLE"
        return False

    async def update(self, kind: FirmwareType, progress: ProgressCallback) -> None:  # noqa: ARG002
        """Update it. One that is refused is watched: it may be under way since before."""
        restarts = self.modem.restarts
        with self.modem.notices(UpdateNotice) as notices:
            began = await _accepted(
                self.modem, UpdateByModule(MODEM_UPDATE, self.modem_project_key)
            )
            async with _within(_UPDATE_S if began else _CHECK_S, "its update"):
                async for notice in _told(self.modem, notices, restarts):
                    step = notice.value
                    if step.step == "NO_UPDATE":
                        raise InstallFailed("the kit's cloud has no update now")
                    if step.step == "DONE" and step.result:
                        raise InstallFailed(f"the module did not take it: {notice.line}")
                    if step.step == "DONE":
                        return
                    if step.bytes is not None:
                        progress(step.step.lower(), step.bytes, 0)
                    elif step.percent is not None:
                        progress(step.step.lower(), step.percent, 100)


class WithCloudClient:
    """An installer, and the kit's own client for what that one found."""

    def __init__(self, inner: Installer, client: CloudClient) -> None:
        self.name, self.types, self.port = inner.name, inner.types | client.types, inner.port
        self._inner = inner
        self._client = client

    async def check(self, job: Job) -> str:
        """Return what the installer says, of what is its own. Raises AtError."""
        if job.by_kit:
            return await why_untold(self._client.modem, job.kind)
        if job.kind not in self._inner.types:
            return f"the installer {self.name} cannot install {job.kind.value} here"
        return await self._inner.check(job)

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return what of this type runs."""
        return await self._inner.running(kind)

    async def install(self, package: Package, progress: ProgressCallback) -> str:
        """Install the image, or have the kit's client do it. Raises InstallFailed."""
        if not package.job.by_kit:
            return await self._inner.install(package, progress)
        await self._client.update(package.job.kind, progress)
        return ""

    async def confirm(self, package: Package) -> None:
        """Make it stay, where that is not the kit's own doing."""
        if not package.job.by_kit:
            await self._inner.confirm(package)


async def _told(modem: Modem, notices: AsyncIterator[N], restarts: int) -> AsyncGenerator[N, None]:
    """Yield the notices of an update. Raises ModemReset where none follows a restart.

    A kit tells no more of what a restart had it forget.
    """
    while True:
        try:
            async with asyncio.timeout(_LOOK_S):
                notice = await anext(notices)
        except TimeoutError:
            if modem.restarts > restarts:
                raise lost_by_restart(modem, "its update") from None
        else:
            yield notice


def _value(notice: Notice) -> object:
    return getattr(notice, "value", None)


async def _accepted(modem: Modem, command: UpdateByCloud | UpdateByModule) -> bool:
    try:
        await modem.send(command)
    except CommandRejected:
        return False
    return True


@asynccontextmanager
async def _within(seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise DeadlineExceeded(f"the kit did not end {what} in {seconds:.0f} s") from None
