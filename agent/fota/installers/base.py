"""The interface of an installer, and how to tell that what it installed runs."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.errors import AgentError
from agent.fota.jobs import MODEM_TYPES, FirmwareType, Job
from agent.fota.versions import same_version
from at.commands.identity import ReadRevision
from at.commands.serial_modem.application import ReadSerialModemVersion
from at.driver.modem import Modem
from at.protocol.error_codes import rejection
from at.protocol.errors import CommandRejected, CommandTimeout, ModemReset, NoAnswer, ParseError

_SAME_ANSWERS = 3
"""Answers alike that cannot be read: so it is the kit that answers so."""
ProgressCallback = Callable[[str, int, int], None]
"""Called with what is done, how much of it is done, and of how much."""


class InstallFailed(AgentError):
    """The kit did not take the image, or did not keep it; the message says what was seen."""

    kind = "fota-install"


@dataclass(frozen=True, slots=True)
class RunningVersion:
    """What runs on the kit, as the kit says."""

    version: str
    image_hash: str = ""
    """MCUboot's name for the running image, hex, where the kit tells it."""
    pending: bool = False
    """Whether another image still waits for the restart that starts it."""


@dataclass(frozen=True, slots=True)
class Package:
    """An image to install, which has proven what it must, and the version that must then run."""

    job: Job
    paths: tuple[Path, ...]
    version: str
    image_hash: str = ""


class Installer(Protocol):
    """Installs images on one kit in one way; its methods stand in the order of their calls.

    Errors of the port (AtError) are raised as they are: the job is then resumed later.
    """

    @property
    def name(self) -> str:
        """The name in the profile."""

    @property
    def types(self) -> frozenset[FirmwareType]:
        """What it can install at all."""

    @property
    def port(self) -> str:
        """The port that it opens itself, which must be free then; "" for none."""

    async def check(self, job: Job) -> str:
        """Return why this kit is not fit for the job now, "" where it is."""

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return what of this type runs, None while the kit does not answer."""

    async def install(self, package: Package, progress: ProgressCallback) -> str:
        """Put the image on the kit and start it. Raises InstallFailed.

        Return the version that was read back, where nothing but the install tells it; else "".
        """

    async def confirm(self, package: Package) -> None:
        """Make the running image permanent, where it is not yet. Raises InstallFailed."""


def runs(package: Package, running: RunningVersion, before: str) -> bool:
    """Return whether what runs is what was installed.

    The image's hash decides where both sides know it, else the version; an image without either
    is seen only by the version having changed.
    """
    if package.image_hash and running.image_hash:
        return package.image_hash == running.image_hash
    if package.version:
        return same_version(package.version, running.version)
    return bool(running.version) and not same_version(running.version, before)


async def running_by_at(modem: Modem, kind: FirmwareType) -> RunningVersion | None:
    """Return what of this type runs as the kit says over AT, None while it does not say.

    Raises LinkLost.
    """
    try:
        return await told_by_at(modem, kind)
    except (CommandTimeout, ModemReset, NoAnswer, ParseError):
        return None


async def told_by_at(modem: Modem, kind: FirmwareType) -> RunningVersion | None:
    """Return what of this type runs as the kit says over AT, None for one that has no such answer.

    Raises AtError of one that may tell it later. It has to tell it twice: by a line that came
    damaged, another version than before would run, and no delta would fit.
    """
    told, again = await _told(modem, kind), await _told(modem, kind)
    if told != again:
        first, other = (one.version if one else "nothing" for one in (told, again))
        raise ParseError(f"the kit tells its version as {first}, then as {other}")
    return told


def lost_by_restart(modem: Modem, before: str) -> ModemReset:
    """Return the error of a kit that restarted by itself, and has forgotten what was begun."""
    return ModemReset(
        f"the kit on {modem.name} restarted before it had {before}",
        hint="`cellagent fota pull` begins the install anew; `cellagent run` by itself",
    )


async def restart(modem: Modem, kind: FirmwareType, timeout_s: float) -> None:
    """Restart what an image is for; raises CommandRejected where the kit refuses that twice.

    An image that is left to the next restart runs after it was reported as FAILED.
    """
    line = "AT#XMODEMRESET" if kind in MODEM_TYPES else "AT#XRESET"
    if (await modem.execute(line, timeout_s=timeout_s)).ok:
        return
    again = await modem.execute(line, timeout_s=timeout_s)  # the line may have damaged it
    if not again.ok:
        raise rejection(line, again)


async def why_untold(modem: Modem, kind: FirmwareType) -> str:
    """Return why no success would be seen over AT, "" where the kit tells what it runs.

    Raises AtError of one that may tell it later: an answer that cannot be read was damaged on its
    way, unless it is the same each time.
    """
    why = f"the kit does not tell which {kind.value} it runs: no success could be seen"
    try:
        return "" if await told_by_at(modem, kind) else why
    except ParseError as unread:
        if unread.answer:
            again = [await _unread(modem, kind) for _ in range(_SAME_ANSWERS - 1)]
            if set(again) == {unread.answer}:
                return f"{why} ({unread}, {_SAME_ANSWERS} times alike)"
        raise


async def _unread(modem: Modem, kind: FirmwareType) -> tuple[str, ...]:
    """Return an answer that cannot be read, () for another one."""
    try:
        await _told(modem, kind)
    except ParseError as unread:
        return unread.answer
    return ()


async def _told(modem: Modem, kind: FirmwareType) -> RunningVersion | None:
    """Ask once.

    +CGMR names the modem's version, #XSMVER that of Serial Modem. An application that was built
    upon Serial Modem may name a version of its own behind these two: then that one counts.
    """
    with suppress(CommandRejected):
        if kind in MODEM_TYPES:
            return RunningVersion((await modem.send(ReadRevision())).revision)
        if kind is FirmwareType.APP:
            versions = await modem.send(ReadSerialModemVersion())
            return RunningVersion(versions.customer or versions.git_describe)
    return None
