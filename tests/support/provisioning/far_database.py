"""A PostgreSQL that is far away: a proxy before its socket, which counts the round trips."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent.tasks import first_of

_SOCKET = ".s.PGSQL.5432"


class ClientFrames:
    """What a client sends: PostgreSQL's frontend protocol 3, cut into pieces at any place."""

    def __init__(self) -> None:
        self._rest = b""
        self._before = b""

    def waits_in(self, data: bytes) -> int:
        """Return for how many answers the client waits with the frames that end in this piece.

        The start of a connection, a password, a query, and what ends a message (Sync), or asks for
        what is there already (Flush). The driver sends a Flush behind each Sync as well.
        """
        waits, self._rest = 0, self._rest + data
        while True:
            head = 1 if self._before else 0  # the first frame has no kind
            size = head + int.from_bytes(self._rest[head : head + 4], "big")
            if len(self._rest) < head + 4 or len(self._rest) < size:
                return waits
            kind = self._rest[:1] if head else b"start"
            waits += kind in {b"start", b"p", b"Q", b"S"} or (kind == b"H" and self._before != b"S")
            self._before, self._rest = kind, self._rest[size:]


class FarDatabase:
    """The proxy. `url` is the database behind it; each of its answers comes `delay_s` later."""

    def __init__(self, url: str, folder: Path, delay_s: float) -> None:
        self._near = url.partition("host=")[2]
        self._folder = folder
        self.url = self.url_of(url)
        self.delay_s = delay_s
        self.trips = 0
        """Messages of the client whose answer it waits for, however many pieces they came in."""
        self.cut_at = 0
        """The trip whose message arrives and whose answer does not; 0: none."""
        self._over = asyncio.Event()
        self._taking: set[asyncio.Task[None] | None] = set()

    def url_of(self, near: str) -> str:
        """Return the URL through the proxy of a database of the same server."""
        return near.replace(self._near, str(self._folder))

    async def serve(self, path: Path, ready: threading.Event) -> None:
        """Take connections until `end`."""
        server = await asyncio.start_unix_server(self._take, path)
        ready.set()
        await self._over.wait()
        server.close()
        await asyncio.gather(*(one for one in self._taking if one is not None))

    def end(self) -> None:
        """End every connection."""
        self._over.set()

    async def _take(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        try:
            far, to_far = await asyncio.open_unix_connection(f"{self._near}/{_SOCKET}")
        except OSError:  # the server is away
            to_near.close()
            return
        answers: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sent = ClientFrames()
        clock = asyncio.get_running_loop().time

        async def up() -> None:
            while data := await near.read(1 << 16):
                self.trips += sent.waits_in(data)
                to_far.write(data)

        async def down() -> None:
            while data := await far.read(1 << 16):
                if self.trips == self.cut_at:
                    return
                await answers.put((clock() + self.delay_s, data))

        async def late() -> None:
            while True:
                due, data = await answers.get()
                await asyncio.sleep(due - clock())
                to_near.write(data)

        self._taking.add(asyncio.current_task())
        with suppress(OSError):  # one end was killed
            await first_of(up(), down(), late(), self._over.wait())
        for writer in (to_near, to_far):
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@contextmanager
def far_database(url: str, delay_s: float = 0.0) -> Iterator[FarDatabase]:
    """Put a proxy before the database at `url`, that of a cluster of a test's own."""
    folder = Path(tempfile.mkdtemp(prefix="far", dir="/tmp"))
    proxy, ready, loop = (
        FarDatabase(url, folder, delay_s),
        threading.Event(),
        asyncio.new_event_loop(),
    )

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(proxy.serve(folder / _SOCKET, ready))

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(proxy.end)
        thread.join()
        shutil.rmtree(folder, ignore_errors=True)
