"""An external program installs the image: named in the profile, started without a shell.

{image} in its arguments stands for the image's path (a path each for the two builds of a BOOT job).
It gets no input, and none of our secrets in its environment. Exit code 0 says that the image is on
the kit; what then runs is read back from the kit all the same. The program has to read back what
the kit does not tell over AT (a boot loader, another application): it prints "version: X".
"""

import asyncio
import os
import re
import shutil
import sys
from dataclasses import dataclass

from agent import programs
from agent.errors import ConfigError
from agent.fota.installers import base
from agent.fota.jobs import MODEM_TYPES, FirmwareType, Job
from at.driver.modem import Modem
from at.ports.process_lock import ProcessLock

PLACEHOLDER = "{image}"
_BY_AT = MODEM_TYPES | {FirmwareType.APP}
_VERSION = re.compile(r"version[:=]\s*(\S{1,60})", re.IGNORECASE)
_ENVIRONMENT = {
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "SYSTEMROOT", "USER",
}  # fmt: skip


@dataclass(slots=True)
class CommandInstaller:
    """A program and its arguments. `modem` reads back what runs; without it nothing can.

    The program holds `lock`, too: where this process is killed, no second one is run beside it.
    `kit_port` is its CELLAGENT_PORT, which says for which kit of several it is run.
    """

    command: tuple[str, ...]
    timeout_s: float
    modem: Modem | None
    lock: ProcessLock | None = None
    kit_port: str = ""
    name: str = "command"
    types: frozenset[FirmwareType] = frozenset(FirmwareType)
    port: str = ""

    async def check(self, job: Job) -> str:  # noqa: ARG002 - the seam's
        """Return "": no job is rejected for a program that is not there. Raises ConfigError."""
        wrong, way_out = "", ""
        if not any(PLACEHOLDER in word for word in self.command):
            wrong = f"fota.command names no place for the image ({PLACEHOLDER})"
            way_out = f"write {PLACEHOLDER} where the program takes the file"
        elif shutil.which(self.command[0]) is None:
            wrong = f"fota.command: there is no program {self.command[0]} that could be run"
            way_out = "name it by its whole path, as a service has a PATH of its own"
        if wrong:
            hint = f"`cellagent config show fota.command` shows it: {way_out}"
            raise ConfigError(wrong, hint=hint)
        return ""

    async def running(self, kind: FirmwareType) -> base.RunningVersion | None:
        """Return what of this type runs, by the kit's own word over AT."""
        return None if self.modem is None else await base.running_by_at(self.modem, kind)

    async def install(self, package: base.Package, progress: base.ProgressCallback) -> str:
        """Run the program to its end, or to the end of its time; return what it read back."""
        words = [
            word.replace(PLACEHOLDER, str(path))
            for word in self.command
            for path in (package.paths if PLACEHOLDER in word else package.paths[:1])
        ]
        process = await self._start(words)
        assert process.stdout is not None
        self._name_holder(process.pid)
        last = seen = ""

        def read_line(line: str) -> None:
            nonlocal seen
            if match := _VERSION.fullmatch(line):
                seen = match[1]
            progress(line, 0, 0)

        try:
            async with asyncio.timeout(self.timeout_s):
                last = await programs.follow(process.stdout, read_line)
                code = await process.wait()
        except TimeoutError:
            raise base.InstallFailed(
                f"{words[0]} did not end within {self.timeout_s:.0f} s"
            ) from None
        finally:
            await programs.end(process)
            self._name_holder(os.getpid())
        if code != 0:
            reason = f": {last}" if last else ""
            raise base.InstallFailed(f"{words[0]} ended with exit code {code}{reason}")
        kind = package.job.kind
        if not seen and await self.running(kind) is None and not self._reported_by_at(kind):
            raise base.InstallFailed(
                f"neither the kit nor {words[0]} tells which {kind.value} runs now: "
                'the program has to print "version: X" as it reads it back'
            )
        return seen

    async def _start(self, words: list[str]) -> asyncio.subprocess.Process:
        environment = {name: text for name, text in os.environ.items() if name in _ENVIRONMENT}
        if self.kit_port:
            environment["CELLAGENT_PORT"] = self.kit_port
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=environment,
                start_new_session=sys.platform != "win32",
                pass_fds=(self.lock.fileno(),) if self.lock and sys.platform != "win32" else (),
            )
        except OSError as error:
            raise base.InstallFailed(f"{words[0]} cannot be started: {error.strerror}") from error

    def _name_holder(self, pid: int) -> None:
        if self.lock is not None:
            self.lock.name_holder(pid)

    def _reported_by_at(self, kind: FirmwareType) -> bool:
        """Return whether the restarted kit may report its version over AT."""
        return self.modem is not None and kind in _BY_AT

    async def confirm(self, package: base.Package) -> None:
        """Do nothing: the program itself confirms its image."""
