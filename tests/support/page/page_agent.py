"""An agent as the page sees it: a control socket that answers with made-up statuses and lines."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec

from agent.config.profile import PageSettings
from agent.console.log_line import parse_line
from agent.daemon.control import protocol
from agent.daemon.control.socket import control_socket_of
from agent.daemon.recent import CONSOLE, Moment, RecentMoments
from agent.daemon.snapshot import AgentStatus
from agent.page.bench_feed import RunningBench
from agent.page.server import ServedPage, serving
from agent.page.views import Subject
from agent.provisioning.ledger import Ledger, open_ledger
from tests.support.page.statuses import kit, status

ANY_PORT = PageSettings(listen="127.0.0.1:0")


class FakeAgent:
    """Answers `watch` with the statuses that it is told, and `console` with the lines."""

    def __init__(self, state_dir: Path) -> None:
        self._socket = control_socket_of(state_dir, "lab")
        self._watchers: list[asyncio.StreamWriter] = []
        self._windows: list[asyncio.StreamWriter] = []
        self._status = status(kit("a"))
        self._names: list[str] | None = None
        self.recent = RecentMoments(time.time)

    async def start(self) -> None:
        self._server = await self._socket.listen(self._connected, "", limit=65536)

    async def stop(self) -> None:
        self._server.close()
        for writer in (*self._watchers, *self._windows):
            writer.transport.abort()
        self._watchers.clear()
        self._windows.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(await reader.readline() or b"{}").get("do")
        if asked == "recent":
            self._windows.append(writer)
            self._tell_moments([writer], self.recent.after(0))
        elif asked == "watch":
            self._watchers.append(writer)
            self._send(writer)
        else:  # whether it still answers
            writer.write(b"{}\n")
            writer.close()

    def tell(self, new: AgentStatus, names: list[str] | None = None) -> None:
        """Have a new status; with `names` of all kits it holds those that have changed."""
        self._status, self._names = new, names
        for writer in self._watchers:
            self._send(writer)

    def print(self, line: str) -> None:
        """Have a kit print a line."""
        self.happen(CONSOLE, line, parse_line(line.encode()).level or "")

    def happen(self, lane: str, text: str, level: str = "") -> None:
        """Have something happen to a kit."""
        before = self.recent.count
        self.recent.add(lane, text, level)
        self._tell_moments(self._windows, self.recent.after(before))

    def _tell_moments(self, windows: list[asyncio.StreamWriter], moments: list[Moment]) -> None:
        answer = msgspec.json.encode(protocol.MomentsAnswer(True, moments=moments)) + b"\n"
        for writer in windows:
            writer.write(answer)

    def _send(self, writer: asyncio.StreamWriter) -> None:
        writer.write(
            protocol.encode(protocol.StatusAnswer(True, status=self._status, names=self._names))
        )


@contextlib.asynccontextmanager
async def page_of(
    state_dir: Path,
    settings: PageSettings = ANY_PORT,
    running: RunningBench | None = None,
    *,
    control: bool = False,
) -> AsyncIterator[ServedPage]:
    """Serve the page of that agent, and of a bench whose ledger is in the same folder."""
    subject = Subject("lab", partial(ledger_in, state_dir, writes=False), running, control)
    async with serving(settings, state_dir, subject, "--page") as page:
        yield page


def ledger_in(folder: Path, *, writes: bool) -> Ledger:
    """Open the ledger of that bench."""
    return open_ledger(str(folder / "ledger.sqlite"), "line-2", writes=writes)
