"""A transport whose far end is a recorded session."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from at.protocol.errors import LinkLost, TranscriptError
from at.transcripts.step_matching import Playback
from at.transcripts.steps import Direction, TranscriptStep
from at.transcripts.transcript import Transcript, load_transcript
from at.transport.base import Receiver


class ReplayTransport:
    """Plays a transcript as the modem: with its silences, and its pauses where those are free.

    `is_free` is asked at each recorded pause whether a wait of the loop takes no time now, as on a
    virtual clock: else what was recorded comes at once. What the kit had said before something was
    sent also comes at once when that is sent, so no pause makes a host wait that did not then.

    Strict: the first byte that does not fit raises TranscriptError from `write`, which names the
    expected step and the nearest one; the link ends where the recorded one did. Lenient: commands
    may come in any order, and the link stays open. The questions that open a modem (`AT`,
    `AT+CMEE?`, `AT+CMEE=1`) are answered even if the session does not have them.
    """

    def __init__(
        self,
        source: str | Path | Transcript,
        *,
        strict: bool = True,
        is_free: Callable[[], bool] = lambda: False,
    ) -> None:
        given = isinstance(source, Transcript)
        self.name = "replay:" if given else f"replay:{source}"
        transcript = source if isinstance(source, Transcript) else load_transcript(source)
        self._playback = Playback(transcript, strict=strict, answers_setup=True)
        self._strict = strict
        self._is_free = is_free
        self._pauses_s = transcript.pauses_s()
        self._receiver: Receiver | None = None
        self._queue: list[tuple[float, TranscriptStep]] = []
        """What is to come, each step behind the seconds that are waited for it."""
        self._timer: asyncio.Handle | None = None
        self.error: TranscriptError | None = None
        """The first mismatch, for a caller that does not see it raised."""

    @property
    def remaining(self) -> list[TranscriptStep]:
        """What a strict session still expects to be sent."""
        return self._playback.remaining

    @property
    def played(self) -> list[TranscriptStep]:
        """What a strict session has printed so far."""
        return self._playback.played

    async def open(self, receiver: Receiver) -> None:
        """Start; the steps before the first sent one are delivered."""
        self._receiver = receiver
        self._schedule(self._playback.first_steps())

    def write(self, data: bytes) -> None:
        """Send bytes. Raises LinkLost once closed, TranscriptError where they do not fit."""
        if self._receiver is None:
            raise LinkLost(f"{self.name} is closed")
        try:
            steps = self._playback.sent(data)
        except TranscriptError as error:
            self.error = self.error or error
            raise
        if self._queue:
            self._hurry()
        self._schedule(steps)

    async def drain(self) -> None:
        """Return at once."""
        if self._receiver is None:
            raise LinkLost(f"{self.name} is closed")

    async def close(self) -> None:
        """Close. Closing twice is harmless."""
        self._report_loss(None)

    def _schedule(self, steps: list[TranscriptStep]) -> None:
        self._queue += [(self._pauses_s.get(s.line, 0.0) + s.seconds, s) for s in steps]
        if self._queue and self._timer is None:
            self._timer = asyncio.get_running_loop().call_soon(self._deliver)

    def _hurry(self) -> None:
        """Let what is still to come do so without its recorded pauses; a silence stays one."""
        if self._timer is not None and self._queue[0][1].direction is not Direction.SILENCE:
            self._timer.cancel()
            self._timer = None
        self._queue = [(step.seconds and wait_s, step) for wait_s, step in self._queue]

    def _deliver(self) -> None:
        self._timer = None
        while self._queue and self._receiver is not None:
            wait_s, step = self._queue[0]
            is_silence = step.direction is Direction.SILENCE
            if wait_s > 0 and (is_silence or self._is_free()):
                self._queue[0] = 0.0, step
                self._timer = asyncio.get_running_loop().call_later(wait_s, self._deliver)
                return
            self._queue.pop(0)
            if is_silence:
                continue
            if step.direction is not Direction.CLOSED:
                self._receiver.data_received(step.data)
            elif self._strict:
                self._report_loss(OSError("the recorded link ended here"))

    def _report_loss(self, reason: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.connection_lost(reason)
