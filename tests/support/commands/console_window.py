"""`cellagent console` beside a running agent, in a process of its own.

    async with window(environment, "--json") as shown:
        await shown.until("a line that holds this")

Both of its outputs are read as one, line by line; waits end with what is waited for.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

PATIENCE_S = 90


@dataclass
class Window:
    """A window, and the lines that were read of it."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    async def until(self, text: str) -> str:
        """Wait for a line that holds `text`; lines before the last wait do not count."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                line = (await self.process.stdout.readline()).decode().rstrip()
                assert line or not self.process.stdout.at_eof(), self.lines
                self.lines.append(line)
                if text in line:
                    return line

    def stall(self) -> None:
        """Have it read nothing any more."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Have it read again."""
        self.process.send_signal(signal.SIGCONT)

    async def close(self) -> int:
        """End it with Ctrl-C; read what it still says."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        rest = await asyncio.wait_for(self.process.stdout.read(), PATIENCE_S)
        self.lines += rest.decode().splitlines()
        return await self.process.wait()


@contextlib.asynccontextmanager
async def window(environment: Mapping[str, str], *words: str) -> AsyncIterator[Window]:
    """Open a window; it is ready, and watches."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "console", *words),
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 22,
    )
    shown = Window(process)
    try:
        await shown.until("Ctrl-C ends")
        yield shown
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
