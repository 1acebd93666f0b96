"""Serial Modem: the image over the UART (#XDFU*), or fetched by the kit itself (#XFOTA).

A full modem image is not offered: it takes the kit into a bootloader mode, and how the image is
cut for it is not public. A bootloader is not offered: no command tells which one runs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent.errors import DeadlineExceeded
from agent.fota.installers import base
from agent.fota.jobs import MODEM_TYPES, FirmwareType, Job
from at.commands.firmware_update import ApplyWiredUpdate, BeginWiredUpdate, WriteWiredUpdate
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.protocol.command_redaction import without_secrets
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected
from at.protocol.notices import Notice

PIECE_BYTES = 4096
_KINDS = {FirmwareType.APP: 0, FirmwareType.MODEM: 1}
_OPERATIONS = {FirmwareType.APP: 1, FirmwareType.MODEM: 2}
_WRITTEN, _APPLIED = "1", "2"
_STEP_S = 120.0
"""Erasing and checking take the kit a while."""
_FETCH_S = 900.0
_STAGES = {
    "0": "start", "1": "download", "2": "erase pending", "3": "erased", "4": "downloaded",
    "5": "complete",
}  # fmt: skip
_FETCH_ERRORS = {
    "1": "its download failed",
    "2": "it rejected the image",
    "3": "the image is of another type",
}


@dataclass(slots=True)
class SerialModemInstaller:
    """Installs on a kit that runs Serial Modem, over its open AT link."""

    modem: Modem
    modem_fetches: bool = False
    """Whether modem images are fetched by the kit over its own network (#XFOTA)."""
    name: str = "serial-modem"
    types: frozenset[FirmwareType] = frozenset(_KINDS)
    port: str = ""

    def fetches_itself(self, job: Job) -> bool:
        """Return whether the kit downloads it: only images that their maker's signature guards."""
        return self.modem_fetches and job.kind in MODEM_TYPES

    async def check(self, job: Job) -> str:
        """Return why this kit cannot take it, "" where it can."""
        if self.modem.dialect is not Dialect.SERIAL_MODEM:
            return (
                f"the kit on {self.modem.name} does not run Serial Modem, which takes images "
                "over its port"
            )
        if await self.running(job.kind) is None:
            return f"the kit does not tell which {job.kind.value} it runs: no success could be seen"
        return ""

    async def running(self, kind: FirmwareType) -> base.RunningVersion | None:
        """Return what of this type runs, None while the kit does not answer."""
        return await base.running_by_at(self.modem, kind)

    async def install(self, package: base.Package, progress: base.ProgressCallback) -> str:
        """Write and apply the image, or have it fetched; then restart what it is for."""
        kind = package.job.kind
        try:
            if self.fetches_itself(package.job):
                await self._fetch_by_kit(package, progress)
            else:
                await self._write(package, _KINDS[kind], progress)
            restart = "AT#XMODEMRESET" if kind in MODEM_TYPES else "AT#XRESET"
            await self.modem.execute(restart, timeout_s=_STEP_S)
        except CommandRejected as refused:
            raise base.InstallFailed(f"the kit refused: {refused}") from refused
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

    async def _execute_or_fail(self, line: str) -> None:
        answer = await self.modem.execute(line, timeout_s=_STEP_S)
        if not answer.ok:
            raise base.InstallFailed(f"the kit refused `{without_secrets(line)}`: {answer.final}")

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

    async def _fetch_by_kit(self, package: base.Package, progress: base.ProgressCallback) -> None:
        operation = _OPERATIONS[package.job.kind]
        with self.modem.notices("#XFOTA") as notices:
            await self._execute_or_fail(f'AT#XFOTA={operation},"{package.url}"')
            try:
                async with asyncio.timeout(_FETCH_S):
                    await self._follow(notices, progress)
            except TimeoutError:
                await self.modem.execute("AT#XFOTA=0")
                raise DeadlineExceeded(
                    f"the kit did not finish its download in {_FETCH_S:.0f} s"
                ) from None

    async def _follow(self, notices: Stream[Notice], progress: base.ProgressCallback) -> None:
        async for notice in notices:
            stage, status, detail = [*_fields(notice), "", "", ""][:3]
            if status in {"1", "2", "3"}:
                reason = _FETCH_ERRORS.get(detail, {"2": "it was stopped"}.get(status, ""))
                raise base.InstallFailed(f"the kit could not fetch it: {reason or notice.line}")
            if stage == "1" and detail.isdigit():
                progress("download by the kit", int(detail), 100)
            elif stage in _STAGES:
                progress(_STAGES[stage], 0, 0)
            if stage == "4":
                return


def _fields(notice: Notice) -> list[str]:
    return [field.strip() for field in notice.line.partition(":")[2].split(",")]
