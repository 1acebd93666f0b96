"""The far end of a test whose sessions are recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.private_files import replacing
from agent.testing.sources import KitSource, console_file
from at.driver.opening import transport_of
from at.transcripts.recorder import RecordingTransport
from at.transcripts.refresh import refreshed_file
from at.transcripts.relay import Relay
from at.virtual.server.kit_ports import served

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.testing.loop_thread import LoopThread
    from at.transport.base import Transport


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
        return server.port

    def console(self) -> Transport:
        """Return a way to the console."""
        return self._recorded(self.inner.console(), "console")

    def end(self) -> None:
        """End the test, before its ports are closed. Raises TranscriptError where it diverged."""
        for recording in self._recordings:
            recording.finish()
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
