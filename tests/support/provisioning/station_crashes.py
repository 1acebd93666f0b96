"""One board of the bench in a child process that dies at a chosen edge, or when it is killed.

An edge is before and after each thing that outlives the process: a command that the modem got, a
note in the ledger, a request to the service. The virtual modem dies with the process, its flash
(the state file) stays: power is pulled from board and host at once.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.call import Host
from agent.config.secrets import Secret
from agent.http import HttpClient, HttpTransport
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ledger import Ledger, open_ledger
from agent.provisioning.running.async_ledger import AsyncLedger, Work
from agent.provisioning.running.batch import run_board
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.steps.registrar import Registrar
from tests.support.provisioning.virtual_tray import GOAL, Tray

T = TypeVar("T")
Edge = Callable[[], None]


class Instrumented:
    """Calls `edge` before and after each method of what it stands for."""

    def __init__(self, inner: Any, edge: Edge) -> None:
        self.inner = inner
        self.edge = edge

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            self.edge()
            result = await method(*arguments, **named)
            self.edge()
            return result

        return call


class InstrumentedLedger(AsyncLedger):
    edge: Edge

    async def call(self, work: Callable[[Ledger], T]) -> T:
        self.edge()
        return await super().call(work)

    def note(self, work: Work[T]) -> Future[T]:
        self.edge()
        return super().note(work)

    async def kept(self, noted: Future[T]) -> T:
        result = await super().kept(noted)
        self.edge()
        return result


class StationFolder(Struct, frozen=True):
    """A station in a folder: its ledger, CA and boards; the service; the ledger's address."""

    folder: Path
    urls: dict[str, str]
    api_key: str
    ledger: str = ""
    name: str = "station"

    @property
    def address(self) -> str:
        """That of its ledger: a file in the folder, where no server has it."""
        return self.ledger or str(self.folder / "ledger.sqlite")

    @asynccontextmanager
    async def means(self, edge: Edge = lambda: None) -> AsyncIterator[Station]:
        ledger = InstrumentedLedger(lambda: open_ledger(self.address, self.name))
        ledger.edge = edge
        keyring = Keyring([ApiKey(Secret(self.api_key))])
        hosts = {host: self.urls.get(host.value, "") for host in Host}
        authority = DeviceCa.load(self.folder / "ca.pem", self.folder / "ca.key", lambda: "")
        try:
            await ledger.opened()
            async with HttpClient(HttpTransport(), hosts, keyring) as client:
                registrar: Any = Instrumented(Registrar(client, GOAL.registration), edge)
                yield Station(GOAL, ledger, registrar, authority, self.folder / "keys")
        finally:
            ledger.close()

    def state(self, board: int) -> Path:
        return self.folder / f"board{board}.json"

    def location(self, board: int) -> BoardLocation:
        return BoardLocation("", f"1-{board}", "", f"board{board}")

    @asynccontextmanager
    async def open(self, board: int, edge: Edge = lambda: None) -> AsyncIterator[Any]:
        async with Tray(self.folder).open(self.location(board)) as opened:
            yield Instrumented(opened, edge)

    async def provision(self, board: int, edge: Edge = lambda: None) -> Outcome:
        """Provision one board in this process."""
        async with self.means(edge) as station:
            return await run_board(
                self.location(board), station, lambda _: self.open(board, edge), lambda *_: None
            )


class KillAt:
    """An edge that kills its process the `at`-th time it is reached; 0 never does."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.seen = 0

    def __call__(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def forked(work: Callable[[], Awaitable[Any]]) -> int:
    """Run `work` in a forked child; return its process id. Exit code 0 when it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
            asyncio.run(_ended(work))
            code = 0
        finally:
            os._exit(code)
    return child


async def _ended(work: Callable[[], Awaitable[Any]]) -> None:
    await work()
