"""Turns the bytes of a session into the steps of a transcript, without their secrets. No I/O.

A step is emitted when its line is whole, since half a secret does not look like one. An unfinished
line is kept back, except a prompt that is answered. At `LONGEST` bytes a line is cut; what follows
within an open quote is left out, since it may be a secret.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from at.protocol.dialect import TRAITS
from at.protocol.errors import TranscriptError
from at.transcripts import transcript
from at.transcripts.redaction import Redactor
from at.transport.base import Receiver, Transport

LONGEST = 16384
_QUOTE = b'"'
_PROMPTS = (b"> ", b"@", *(end for traits in TRAITS.values() for end in traits.prompt_ends))
_LEFT_OUT = b"{redacted:overlong}"


class Recorder:
    """Joins the pieces of both directions to whole steps, oldest first."""

    def __init__(self, redactor: Redactor, *, terminator: bytes = b"\r") -> None:
        self._redactor = redactor
        self._ends = {transcript.Direction.SENT: terminator, transcript.Direction.RECEIVED: b"\n"}
        self._pending = {
            transcript.Direction.SENT: bytearray(),
            transcript.Direction.RECEIVED: bytearray(),
        }
        self._since: dict[transcript.Direction, float] = {}
        self._skipping: set[transcript.Direction] = set()

    def add(
        self, direction: transcript.Direction, data: bytes, at_s: float
    ) -> list[transcript.TranscriptStep]:
        """Add bytes of a direction with their time in seconds; return the steps that are whole."""
        steps: list[transcript.TranscriptStep] = []
        received = self._pending[transcript.Direction.RECEIVED]
        if direction is transcript.Direction.SENT and received.endswith(_PROMPTS):
            steps += self._give(transcript.Direction.RECEIVED)
        pending = self._pending[direction]
        if direction in self._skipping:
            _, quote, data = data.partition(_QUOTE)
            if not quote:
                return steps
            self._skipping.discard(direction)
            pending += _LEFT_OUT
        self._since.setdefault(direction, at_s)
        pending += data
        while (end := self._line_end(direction)) > 0:
            steps.append(self._step(direction, bytes(pending[:end])))
            del pending[:end]
            if pending:
                self._since[direction] = at_s
        if len(pending) > LONGEST:
            quoted = pending.count(_QUOTE) % 2 == 1
            steps += self._give(direction)
            if quoted:
                self._skipping.add(direction)
        return steps

    def finish(self, at_s: float | None = None) -> list[transcript.TranscriptStep]:
        """Return the steps that are left; with a time, also that the link ended then."""
        steps = self._give(transcript.Direction.SENT) + self._give(transcript.Direction.RECEIVED)
        if at_s is not None:
            steps.append(transcript.TranscriptStep(transcript.Direction.CLOSED, b"", at_s))
        return steps

    def _give(self, direction: transcript.Direction) -> list[transcript.TranscriptStep]:
        pending = self._pending[direction]
        if not pending:
            return []
        data = bytes(pending)
        pending.clear()
        return [self._step(direction, data)]

    def _step(self, direction: transcript.Direction, data: bytes) -> transcript.TranscriptStep:
        return transcript.TranscriptStep(
            direction, self._redactor.clean(data), round(self._since.pop(direction), 6)
        )

    def _line_end(self, direction: transcript.Direction) -> int:
        """Return where the first line ends outside quotes, 0 if none does."""
        pending, end = self._pending[direction], self._ends[direction]
        index = pending.find(end)
        while index >= 0:
            index += len(end)
            if pending.count(_QUOTE, 0, index) % 2 == 0:
                return index
            index = pending.find(end, index)
        return 0


class RecordingTransport:
    """Records another transport to a file (0600); a line is written before the next one passes.

    Tokens, keys and passwords are redacted before they are written, and unless `keep_identity` also
    what names the device, its SIM or a person. `header` are the header lines: device, firmware, ...
    """

    def __init__(
        self,
        inner: Transport,
        path: str | Path,
        *,
        header: Mapping[str, str] | None = None,
        keep_identity: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._path = Path(path)
        self._header = {"origin": "recorded", **(header or {})}
        self._recorder = Recorder(Redactor(identity=not keep_identity))
        self._clock = clock
        self._began = 0.0
        self._file = -1
        self._receiver: Receiver | None = None

    @property
    def name(self) -> str:
        """The name of the port behind."""
        return self._inner.name

    async def open(self, receiver: Receiver) -> None:
        """Open the port and begin the file. Raises PortError; TranscriptError if it exists."""
        begins = self._file < 0
        if begins:
            self._begin()
        self._receiver = receiver
        try:
            await self._inner.open(self)
        except BaseException:
            if begins:  # nothing was recorded: the name is free for another try
                self._end(None)
                self._path.unlink(missing_ok=True)
            raise

    def _begin(self) -> None:
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise TranscriptError(
                f"{self._path} exists already", hint="a recording overwrites nothing: name another"
            ) from error
        except OSError as error:
            raise TranscriptError(f"cannot write {self._path}: {error.strerror}") from error
        self._began = self._clock()
        self._put(transcript.format_transcript(transcript.Transcript((), self._header)))

    def write(self, data: bytes) -> None:
        """Record and send bytes. Raises LinkLost once closed."""
        self._record(transcript.Direction.SENT, data)
        self._inner.write(data)

    async def drain(self) -> None:
        """Wait until the port behind has room again. Raises LinkLost."""
        await self._inner.drain()

    async def close(self) -> None:
        """Close the port and the file."""
        await self._inner.close()
        self._end(None)

    def data_received(self, data: bytes) -> None:
        """Record and deliver bytes."""
        self._record(transcript.Direction.RECEIVED, data)
        if self._receiver is not None:
            self._receiver.data_received(data)

    def connection_lost(self, reason: Exception | None) -> None:
        """Report the end of the link; an unexpected one is recorded."""
        if reason is not None:
            self._end(self._clock() - self._began)
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.connection_lost(reason)

    def _record(self, direction: transcript.Direction, data: bytes) -> None:
        if self._file >= 0:
            self._put_steps(self._recorder.add(direction, data, self._clock() - self._began))

    def _end(self, at_s: float | None) -> None:
        if self._file >= 0:
            self._put_steps(self._recorder.finish(at_s))
            os.close(self._file)
            self._file = -1

    def _put_steps(self, steps: list[transcript.TranscriptStep]) -> None:
        if steps:
            self._put("".join(transcript.format_step(step) + "\n" for step in steps))

    def _put(self, text: str) -> None:
        data = text.encode("ascii", "backslashreplace")
        while data:
            data = data[os.write(self._file, data) :]
