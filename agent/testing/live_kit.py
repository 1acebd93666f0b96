"""A live kit as the far end of a test: taken for it alone, virtual or not, and recorded."""

import asyncio
import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agent.files.paths import state_dir
from agent.files.private_files import make_folder, replacing
from agent.testing.choice import KitEntry, KitWish
from agent.testing.loop_thread import LoopThread
from agent.testing.sources import KitSource, console_file
from at.driver.opening import transport_of
from at.ports.process_lock import HeldByAnother, ProcessLock
from at.ports.usb import device_of
from at.transcripts.recorder import RecordingTransport
from at.transcripts.refresh import refreshed_file
from at.transcripts.relay import Relay
from at.transport.base import Transport
from at.virtual.options import VirtualOptions
from at.virtual.server.kit_ports import KitPorts, kit_on_ports, served
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import make_modem
from at.virtual.server.tcp import TcpServer

Lock = ProcessLock | None
_RETRY_S = 0.05
_TELLS_AFTER_S = 5.0


@contextlib.contextmanager
def leased(kits: Sequence[KitEntry], tell: Callable[[str], None]) -> Iterator[KitEntry]:
    """Take the first of `kits` that is free, waiting until one is; give it back at the end.

    A virtual one always is. The locks of the others are this user's, and end with their process.
    `tell` is called once, where it is waited for long. Raises FolderUnusable where the locks cannot
    be made.
    """
    kit, lock = _taken(kits, tell)
    try:
        yield kit
    finally:
        if lock is not None:
            lock.release()


def _taken(kits: Sequence[KitEntry], tell: Callable[[str], None]) -> tuple[KitEntry, Lock]:
    folder, tells_at = state_dir() / "leases", time.monotonic() + _TELLS_AFTER_S
    held: dict[str, str] = {}
    try:
        while True:
            for kit in kits:
                if kit.is_virtual:
                    return kit, None
                make_folder(folder)
                name = hashlib.sha256(device_of(kit.port).encode()).hexdigest()[:16]
                try:
                    return kit, ProcessLock(folder / f"{name}.lock")
                except HeldByAnother as error:
                    held[kit.port] = str(error)
            if time.monotonic() >= tells_at:
                tells_at = math.inf
                tell(_waited_for(held))
            time.sleep(_RETRY_S)
    except BaseException as stop:  # a time-out of pytest
        if held:
            stop.add_note(_waited_for(held))
        raise


def _waited_for(held: Mapping[str, str]) -> str:
    return "it waits for its kit: " + "; ".join(f"{port} is {how}" for port, how in held.items())


class VirtualSource(KitSource):
    """A virtual kit of the test's own, on terminals."""

    def __init__(self, wish: KitWish, entry: KitEntry, thread: LoopThread) -> None:
        super().__init__(thread)
        # Of another model, what the entry says of its own does not hold.
        if wish.model and wish.model.lower() != entry.model.lower():
            entry = KitEntry(model=wish.model)
        options = VirtualOptions(
            model=entry.model,
            firmware=wish.firmware or entry.firmware,
            dialect=wish.dialect or entry.dialect,
            registered=wish.registered,
            faults=wish.faults,
            instant=True,
        )
        self.ports: KitPorts = thread.call(self._served(options))
        self._at, self._console = self.ports.at.port, self.ports.console.port

    async def _served(self, options: VirtualOptions) -> KitPorts:
        modem = make_modem(options, console_apart=True)
        return await self._opened().enter_async_context(kit_on_ports(modem, self._folder()))


class RecordedSource(KitSource):
    """Another source, whose sessions are recorded in a folder until the test has ended."""

    def __init__(self, inner: KitSource, thread: LoopThread) -> None:
        super().__init__(thread)
        self.inner, self._kept = inner, self._folder()
        self._recordings: list[RecordingTransport] = []

    def transport(self, is_free: Callable[[], bool] | None = None) -> Transport:
        """Return a way to the AT port for a driver."""
        return self._recorded(self.inner.transport(is_free), "session")

    def _recorded(self, inner: Transport, name: str) -> RecordingTransport:
        recording = RecordingTransport(inner, self._kept / f"{name}.transcript")
        self._recordings.append(recording)
        return recording

    def port(self) -> str:
        """Return the AT port's name for any program."""
        return self._thread.call(self._relay())

    async def _relay(self) -> str:
        recording = self._recorded(transport_of(self.inner.port()), "session")
        lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        relay = Relay(recording.write, lost)
        stack = self._opened()
        server = await served(stack, self._folder() / "kit", relay.receive)
        relay.send = server.send
        stack.push_async_callback(recording.close)
        await recording.open(relay)
        losing = asyncio.create_task(self._lose(server, lost))
        stack.callback(losing.cancel)
        return server.port

    async def _lose(self, server: PtyServer | TcpServer, lost: asyncio.Future[Exception]) -> None:
        """Let the program learn that its kit has gone, as it would without a recording."""
        await asyncio.shield(lost)
        await server.hang_up(for_good=True)

    def console(self) -> Transport:
        """Return a way to the console."""
        return self._recorded(self.inner.console(), "console")

    def end(self) -> None:
        """End the test, before its ports are closed. Raises TranscriptError where it diverged."""
        for recording in self._recordings:
            self._thread.run(recording.finish)
        self.inner.end()

    def keep(self, file: Path) -> None:
        """Move the recordings to where a replay looks for them, with the rules of older ones there.

        Raises TranscriptError where an older one cannot be read: it is left as it is.
        """
        file.parent.mkdir(parents=True, exist_ok=True)
        for name, target in (("session", file), ("console", console_file(file))):
            recorded = self._kept / f"{name}.transcript"
            if not recorded.exists():
                target.unlink(missing_ok=True)
                continue
            text = recorded.read_text("ascii")
            if target.exists():
                text = refreshed_file(target, recorded)
            with replacing(target, private=True) as whole:  # it may be on another file system
                whole.write(text.encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """Close what was opened."""
        super().close()
        self.inner.close()
