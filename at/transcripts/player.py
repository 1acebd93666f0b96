"""Plays a transcript on a served port, at once or at the recorded times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from at.protocol.errors import AtError, TranscriptError
from at.transcripts.steps import Direction, TranscriptStep

if TYPE_CHECKING:
    from at.transcripts.step_matching import Playback
    from at.virtual.server.pty import PtyServer
    from at.virtual.server.tcp import TcpServer


class Player:
    """Answers the client of a port as the transcript does, with the recorded times if `paced`."""

    def __init__(self, playback: Playback, *, paced: bool) -> None:
        self._playback = playback
        self._pauses_s = playback.transcript.pauses_s() if paced else {}
        self._steps: asyncio.Queue[list[TranscriptStep]] = asyncio.Queue()
        self._client_came = asyncio.Event()
        self.over: asyncio.Future[AtError | None] = asyncio.get_running_loop().create_future()
        """The mismatch that ended the replay; None if the recorded link had ended for good."""

    def receive(self, data: bytes) -> None:
        """Match bytes of the client with the transcript; a mismatch ends the replay."""
        if self.over.done():
            return
        try:
            self._steps.put_nowait(self._playback.sent(data))
        except TranscriptError as error:
            self.end(error)

    def end(self, reason: AtError | None) -> None:
        """End the replay, for `reason` or because the recorded session is over."""
        if not self.over.done():
            self.over.set_result(reason)

    async def play_on(self, port: PtyServer | TcpServer, *, stays: bool) -> None:
        """Print on a port, and hang up where the recorded line was closed.

        Returns once it is closed for good, when nothing follows in the session. With `stays` the
        port always comes back.
        """
        port.opened = self._client_came.set
        steps = self._playback.first_steps()
        while True:
            try:
                if await self._play(steps, port, stays=stays):
                    return
            except AtError as error:
                self.end(error)
                return
            steps = await self._steps.get()

    async def _play(
        self, steps: list[TranscriptStep], port: PtyServer | TcpServer, *, stays: bool
    ) -> bool:
        """Print steps, at once or at their times; return True if the port was closed for good."""
        for number, step in enumerate(steps, 1):
            if pause_s := self._pauses_s.get(step.line):
                await asyncio.sleep(pause_s)
            # What is printed before a client has opened the port is lost.
            await self._client_came.wait()
            if step.direction is Direction.SILENCE:
                await asyncio.sleep(step.seconds)
                continue
            if step.direction is not Direction.CLOSED:
                port.send(step.data)
                continue
            goes_on = stays or number < len(steps) or bool(self._playback.remaining)
            self._client_came.clear()
            await port.hang_up(for_good=not goes_on)
            if not goes_on:
                return True
        return False
