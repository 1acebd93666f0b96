"""The far end that a test talks to: a real kit, or a recording of one."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import UsageError
from agent.files.temporary_folder import temporary_folder
from at.driver.opening import transport_of
from at.protocol.counts import counted
from at.protocol.errors import AtError, TranscriptError
from at.transcripts.replay_transport import ReplayTransport
from at.transcripts.step_matching import Playback, shown
from at.transcripts.steps import TranscriptStep
from at.transcripts.transcript import load_transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.testing.loop_thread import LoopThread
    from at.transcripts.player import Player
    from at.transport.base import Transport
    from at.virtual.server.pty import PtyServer
    from at.virtual.server.tcp import TcpServer


class KitSource:
    """One kit for one test, which talks to its AT port in one way: by a driver, or by a program."""

    def __init__(self, thread: LoopThread, at: str = "", console: str = "") -> None:
        self._thread = thread
        self._stack: contextlib.AsyncExitStack | None = None
        self._at, self._console = at, console

    def _opened(self) -> contextlib.AsyncExitStack:
        """Return what `close` unwinds, on the loop of the thread."""
        if self._stack is None:
            self._stack = contextlib.AsyncExitStack()
        return self._stack

    def _folder(self) -> Path:
        """Return a new folder of this source, which goes with it."""
        return self._opened().enter_context(temporary_folder("cellagent-kit"))

    def transport(self, is_free: Callable[[], bool] | None = None) -> Transport:  # noqa: ARG002
        """Return a way to the AT port for a driver, on whatever loop. Raises TranscriptError.

        A recording keeps its pauses where `is_free` returns that waiting takes no time.
        """
        return transport_of(self._at)

    def port(self) -> str:
        """Return the AT port's name for any program. Raises TranscriptError."""
        return self._at

    def console(self) -> Transport:
        """Return a way to the console. Raises UsageError where the kit's is not known."""
        if not self._console:
            raise UsageError(
                f"the console of {self._at} is not known",
                hint=f"`pytest --cellagent-kit={shlex.quote(self._at)},console=PORT`",
            )
        return transport_of(self._console)

    def end(self) -> None:
        """End the test, before its ports are closed. Raises TranscriptError where it diverged."""

    def close(self) -> None:
        """Close what was opened."""
        if self._stack is not None:
            self._thread.call(self._stack.aclose())


class ReplaySource(KitSource):
    """A recording: `file` of the AT port, and beside it that of the console where there is one."""

    def __init__(self, file: Path, thread: LoopThread) -> None:
        super().__init__(thread)
        self.file = file
        self._played: ReplayTransport | None = None
        self._playback: Playback | None = None
        self._player: Player | None = None

    def transport(self, is_free: Callable[[], bool] | None = None) -> Transport:
        """Return a way to the AT port for a driver."""
        self._played = ReplayTransport(self.file, is_free=is_free or (lambda: False))
        return self._played

    def port(self) -> str:
        """Return the AT port's name for any program."""
        return self._thread.call(self._serve())

    async def _serve(self) -> str:
        from at.transcripts.player import Player
        from at.virtual.server.kit_ports import served

        self._playback = Playback(load_transcript(self.file), strict=True, answers_setup=True)
        self._player = player = Player(self._playback, paced=False)
        stack = self._opened()
        server = await served(stack, self._folder() / "kit", player.receive)
        playing = asyncio.create_task(player.play_on(server, stays=False))
        stack.callback(playing.cancel)

        hanging_up = asyncio.create_task(self._hang_up(server, player))
        stack.callback(hanging_up.cancel)
        return server.port

    async def _hang_up(self, server: PtyServer | TcpServer, player: Player) -> None:
        """Let whoever waits for an answer that the recording does not have wait no longer."""
        if await asyncio.shield(player.over) is not None:
            await server.hang_up(for_good=True)

    def console(self) -> Transport:
        """Return a way to the console."""
        return ReplayTransport(console_file(self.file), strict=False)

    @property
    def line(self) -> int:
        """The line of the recording that was printed last, 0 before the first."""
        player = self._played or self._playback
        return player.played[-1].line if player is not None and player.played else 0

    def end(self) -> None:
        """End the test, before its ports are closed. Raises TranscriptError where it diverged."""
        error: AtError | None = None
        left: list[TranscriptStep] = []
        if self._played is not None:
            error, left = self._played.error, self._played.remaining
        elif self._player is not None and self._playback is not None:
            over = self._player.over
            error, left = over.result() if over.done() else None, self._playback.remaining
        if error is not None:
            raise error
        if left:
            raise TranscriptError(
                f"{self.file}:{left[0].line}: the test ended before {shown(left[0].data)} was sent"
                f" ({counted(len(left), 'steps')} of the recording never were)",
                line=left[0].line,
                file=self.file,
            )


def console_file(file: Path) -> Path:
    """Return the transcript of the console beside that of the AT port."""
    return file.with_suffix(".console.transcript")
