"""Serial Modem: the image over the UART (#XDFU*).

A full modem image is not offered: it takes the kit into a bootloader mode, which wants its segments
one by one, each at its address. A bootloader is not offered: no command tells which one runs.
"""

import asyncio
from dataclasses import dataclass

from agent.fota.installers import base
from agent.fota.jobs import FirmwareType, Job
from at.commands.serial_modem.firmware_update import (
    ApplyWiredUpdate,
    BeginWiredUpdate,
    WriteWiredUpdate,
)
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected
from at.protocol.notices import Notice

PIECE_BYTES = 4096
_KINDS = {FirmwareType.APP: 0, FirmwareType.MODEM: 1}
_WRITTEN, _APPLIED = "1", "2"
_STEP_S = 120.0
"""Erasing and checking take the kit a while."""


@dataclass(slots=True)
class SerialModemInstaller:
    """Installs on a kit that runs Serial Modem, over its open AT link."""

    modem: Modem
    name: str = "serial-modem"
    types: frozenset[FirmwareType] = frozenset(_KINDS)
    port: str = ""

    async def check(self, job: Job) -> str:
        """Return why this kit cannot take it, "" where it can. Raises AtError."""
        if self.modem.dialect is not Dialect.SERIAL_MODEM:
            return (
                f"the kit on {self.modem.name} does not run Serial Modem, which takes images "
                "over its port"
            )
        return await base.why_untold(self.modem, job.kind)

    async def running(self, kind: FirmwareType) -> base.RunningVersion | None:
        """Return what of this type runs, None while the kit does not answer."""
        return await base.running_by_at(self.modem, kind)

    async def install(self, package: base.Package, progress: base.ProgressCallback) -> str:
        """Write and apply the image; then restart what it is for."""
        kind, restarts = package.job.kind, self.modem.restarts
        try:
            try:
                await self._write(package, _KINDS[kind], progress)
            except (CommandRejected, base.InstallFailed):
                # The line may have lost or changed a byte: the kit does not take the same twice.
                await self._write(package, _KINDS[kind], progress)
            await base.restart(self.modem, kind, _STEP_S)
        except (CommandRejected, base.InstallFailed) as failed:
            if self.modem.restarts > restarts:
                raise base.lost_by_restart(self.modem, "the image") from failed
            if isinstance(failed, base.InstallFailed):
                raise
            raise base.InstallFailed(f"the kit refused: {failed}") from failed
        return ""

    async def confirm(self, package: base.Package) -> None:
        """Do nothing: Serial Modem confirms its own image when it has started."""

    async def _write(
        self, package: base.Package, kind: int, progress: base.ProgressCallback
    ) -> None:
        content = memoryview(package.paths[0].read_bytes())
        with self.modem.notices("#XDFU") as notices:
            await self.modem.send(BeginWiredUpdate(kind, len(content)))
            for start in range(0, len(content), PIECE_BYTES):
                piece = bytes(content[start : start + PIECE_BYTES])
                write = WriteWiredUpdate(kind, start, len(piece))
                await self.modem.transfer(write.encode(), piece)
                await self._await_result(notices, kind, _WRITTEN, f"the bytes at {start}")
                progress("upload", start + len(piece), len(content))
            await self.modem.send(ApplyWiredUpdate(kind), timeout_s=_STEP_S)
            await self._await_result(notices, kind, _APPLIED, "the image")

    async def _await_result(self, notices: Stream[Notice], kind: int, step: str, what: str) -> None:
        try:
            async with asyncio.timeout(_STEP_S):
                async for notice in notices:
                    fields = _fields(notice)
                    if fields[:2] == [str(kind), step]:
                        if fields[2:] != ["0"]:
                            raise base.InstallFailed(f"the kit did not take {what}: {notice.line}")
                        return
        except TimeoutError:
            raise base.InstallFailed(f"the kit said nothing of {what} in {_STEP_S:.0f} s") from None


def _fields(notice: Notice) -> list[str]:
    return [field.strip() for field in notice.line.partition(":")[2].split(",")]
