"""Turns the bytes of a session into the steps of a transcript, without their secrets. No I/O.

A step is emitted when its line is whole, since half a secret does not look like one. An unfinished
line is kept back, except a prompt that is answered. At `LONGEST` bytes a line is cut; what follows
within an open quote, or behind a secret, is left out, since it may be secret, too. Of a payload
only its length is recorded.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from at.protocol.dialect import TRAITS
from at.protocol.errors import TranscriptError
from at.transcripts.interruptions import is_cut
from at.transcripts.payloads import Payloads, Phase
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import Direction, TranscriptStep, format_step
from at.transcripts.transcript import Transcript, format_transcript
from at.transport.base import Receiver, Transport

LONGEST = 16384
_QUOTE = b'"'
_PROMPTS = (b"> ", b"@", *(end for traits in TRAITS.values() for end in traits.prompt_ends))
_REST = b"{redacted:rest}"
_LEFT_OUT = b"{redacted:overlong}"
# The modem may take a line with another end than the session's terminator. What is left of an end
# before a command, such as the LF of CR LF, is part of that command's step.
_OTHER_ENDS = rb"[\n\0]"
_REST_OF_END = re.compile(rb"[\n\0]*")


class Recorder:
    """Joins the pieces of both directions to whole steps, oldest first."""

    def __init__(self, redactor: Redactor, *, terminator: bytes = b"\r") -> None:
        self._redactor = redactor
        self._payloads = Payloads()
        ends = re.compile(re.escape(terminator) + b"|" + _OTHER_ENDS)
        self._sent = _Stream(Direction.SENT, ends)
        self._received = _Stream(Direction.RECEIVED, re.compile(rb"\n"))

    @property
    def in_data_mode(self) -> bool:
        """Whether the next bytes to the modem are data, and no command line."""
        return self._payloads.phase is Phase.DATA

    def add(self, direction: Direction, data: bytes, at_s: float | None) -> list[TranscriptStep]:
        """Add bytes of a direction with their time in seconds; return the steps that are whole."""
        if direction is Direction.RECEIVED:
            self._received.add(data, at_s)
            return self._take_received(at_s)
        steps: list[TranscriptStep] = []
        if self._received.pending.endswith(_PROMPTS):
            steps += self._rest(self._received)
        elif self._received.lacks_lf():
            # It was answered: the client took the CR for the end, whose LF is late, or never comes.
            line = self._payloads.received(self._received.take(len(self._received.pending)))
            steps.append(self._received.step(self._cleaned(line, self._received), at_s))
        self._sent.add(data, at_s)
        return steps + self._take_sent(at_s)

    def finish(self, at_s: float | None = None) -> list[TranscriptStep]:
        """Return the steps that are left; with a time, also that the link ended then."""
        steps = self._rest(self._sent) + self._rest(self._received)
        if at_s is not None:
            steps.append(TranscriptStep(Direction.CLOSED, b"", at_s))
        return steps

    def end_line(self, direction: Direction) -> list[TranscriptStep]:
        """Return what is pending of a direction, although its line or a secret has no end."""
        stream = self._sent if direction is Direction.SENT else self._received
        steps = self._rest(stream)
        stream.show()
        return steps

    def _take_received(self, at_s: float | None) -> list[TranscriptStep]:
        steps: list[TranscriptStep] = []
        while line := self._received.line(quotes=not self._payloads.echoes_message):
            if self._payloads.phase is Phase.MESSAGE:  # a log has no Ctrl-Z, nor what is given up
                steps += self._rest(self._sent)
            shown = self._payloads.received(line)
            steps.append(self._received.step(self._cleaned(shown, self._received), at_s))
            steps += self._take_sent(at_s)
        return steps + self._cut(self._received)

    def _take_sent(self, at_s: float | None) -> list[TranscriptStep]:
        steps: list[TranscriptStep] = []
        while self._sent.pending:
            phase = self._payloads.phase
            if phase is Phase.COMMANDS:
                line = self._sent.line()
                if not line:
                    return steps + self._cut(self._sent)
                self._payloads.sent(line)
                steps.append(self._sent.step(self._cleaned(line, self._sent), at_s))
                continue
            if phase is Phase.ANNOUNCED and len(self._sent.pending) <= LONGEST:
                break  # the answer says what these bytes are
            payload = self._payload()
            if not payload:
                break
            steps.append(self._sent.step(payload, at_s))
        return steps

    def _cleaned(self, line: bytes, stream: _Stream) -> bytes:
        cleaned = self._without_secrets(line, stream)
        if cleaned.endswith(_REST):
            stream.skip(quoted=True)  # a quote before the command hid that the secret goes on
        return cleaned

    def _without_secrets(self, line: bytes, stream: _Stream) -> bytes:
        redactor = self._redactor
        is_sent = stream is self._sent
        return redactor.clean_command(line) if is_sent else redactor.clean_answer(line)

    def _payload(self, *, whole: bool = False) -> bytes:
        """Take what is pending of a payload; return how that is recorded, b"" if its end must come.

        `whole`: nothing more comes.
        """
        size = len(self._sent.pending)
        ends = self._payloads.payload_end(self._sent.pending)
        if ends is None and not whole and size <= LONGEST:
            return b""
        length, end = ends or (size, size)
        taken = self._sent.take(end)
        return (b"{redacted:payload:%d}" % length if length else b"") + taken[length:]

    def _rest(self, stream: _Stream) -> list[TranscriptStep]:
        """Return what is pending as a step, whole or not."""
        if not stream.pending:
            return []
        if stream is self._sent and self._payloads.phase is not Phase.COMMANDS:
            return [stream.step(self._payload(whole=True), None)]
        return [stream.step(self._without_secrets(stream.take(len(stream.pending)), stream), None)]

    def _cut(self, stream: _Stream) -> list[TranscriptStep]:
        """Return the beginning of a line that is too long; of a secret, the rest is left out."""
        if len(stream.pending) <= LONGEST:
            return []
        begun = stream.take(len(stream.pending))
        cleaned = self._without_secrets(begun, stream)
        quoted = begun.count(_QUOTE) % 2 == 1
        if quoted or cleaned != begun:
            stream.skip(quoted=quoted)
        return [stream.step(cleaned, None)]


class _Stream:
    """The bytes of one direction that are not recorded yet; `end` ends a line."""

    def __init__(self, direction: Direction, end: re.Pattern[bytes]) -> None:
        self.pending = bytearray()
        self._direction = direction
        self._end = end
        self._since: float | None = None
        self._scanned = 0
        """How many of the pending bytes hold no end of a line."""
        self._quoted = False
        """Whether a quote is open behind them."""
        self._skipping = False

    def add(self, data: bytes, at_s: float | None) -> None:
        if not self.pending:
            self._since = at_s
        self.pending += data

    def skip(self, *, quoted: bool) -> None:
        """Leave out what follows up to the end of the line; `quoted`: a quote is open there."""
        self._skipping, self._quoted = True, quoted

    def show(self) -> None:
        """Leave out no more."""
        self._skipping = self._quoted = False

    def lacks_lf(self) -> bool:
        """Return whether what is pending ends with a CR, outside quotes and what is left out."""
        return self.pending.endswith(b"\r") and not (self._quoted or self._skipping)

    def take(self, length: int) -> bytes:
        taken = bytes(self.pending[:length])
        del self.pending[:length]
        self._scanned, self._quoted = 0, False
        return taken

    def line(self, *, quotes: bool = True) -> bytes:
        """Take the first line, which with `quotes` ends outside them; b"" if it has no end yet."""
        self._quoted &= quotes
        found = self._line_end(quotes)
        if found:
            line = self.take(found)
            skipped, self._skipping = self._skipping, False
            return _LEFT_OUT + line[-1:] if skipped else line
        if self._skipping:
            self.pending.clear()
            self._scanned = 0
        return b""

    def step(self, data: bytes, next_at_s: float | None) -> TranscriptStep:
        """Return a step with the time of its first byte; the next one begins at `next_at_s`."""
        since, self._since = self._since, next_at_s
        rounded = None if since is None else round(since, 6)
        return TranscriptStep(self._direction, data, rounded)

    def _line_end(self, quotes: bool) -> int:
        """Return where the first line ends, 0 if it does not; each byte is looked at once."""
        is_sent = self._direction is Direction.SENT
        if is_sent and not self._scanned and not self._skipping:
            rest = _REST_OF_END.match(self.pending)
            self._scanned = rest.end() if rest else 0
        for match in self._end.finditer(self.pending, self._scanned):
            self._scan_to(match.end())
            if not (quotes and self._quoted) and (is_sent or not self._is_cut(match.end())):
                return match.end()
        self._scan_to(len(self.pending))
        return 0

    def _is_cut(self, end: int) -> bool:
        """Return whether a log line cut the modem's line that ends there: its rest follows."""
        begin = self.pending.rfind(b"\n", 0, end - 1) + 1
        return is_cut(bytes(self.pending[begin:end]))

    def _scan_to(self, end: int) -> None:
        self._quoted ^= self.pending.count(_QUOTE, self._scanned, end) % 2 == 1
        self._scanned = end


class TappedTransport:
    """Another transport whose steps are given away as they become whole, before they pass."""

    def __init__(
        self, inner: Transport, recorder: Recorder, take: Callable[[list[TranscriptStep]], None]
    ) -> None:
        self._inner = inner
        self._recorder = recorder
        self._take = take
        self._began = time.monotonic()
        self._receiver: Receiver | None = None

    @property
    def name(self) -> str:
        """The name of the port behind."""
        return self._inner.name

    async def open(self, receiver: Receiver) -> None:
        """Open the port. Raises PortError."""
        self._receiver = receiver
        await self._inner.open(self)

    def write(self, data: bytes) -> None:
        """Note and send bytes. Raises LinkLost once closed."""
        self._note(Direction.SENT, data)
        self._inner.write(data)

    async def drain(self) -> None:
        """Wait until the port behind has room again. Raises LinkLost."""
        await self._inner.drain()

    async def close(self) -> None:
        """Close the port."""
        await self._inner.close()
        self._end(None)

    def data_received(self, data: bytes) -> None:
        """Note and deliver bytes."""
        self._note(Direction.RECEIVED, data)
        if self._receiver is not None:
            self._receiver.data_received(data)

    def connection_lost(self, reason: Exception | None) -> None:
        """Report the end of the link; an unexpected one is a step."""
        if reason is not None:
            self._end(time.monotonic() - self._began)
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.connection_lost(reason)

    def _note(self, direction: Direction, data: bytes) -> None:
        self._take(self._recorder.add(direction, data, time.monotonic() - self._began))

    def _end(self, at_s: float | None) -> None:
        self._take(self._recorder.finish(at_s))


class RecordingTransport(TappedTransport):
    """Records another transport to a file (0600); a line is written before the next one passes.

    Tokens, keys and passwords are redacted before they are written, and unless `keep_identity` also
    what names the device, its SIM or a person. `header` are the header lines: device, ...
    """

    def __init__(
        self,
        inner: Transport,
        path: str | Path,
        *,
        header: Mapping[str, str] | None = None,
        keep_identity: bool = False,
    ) -> None:
        self._path = Path(path)
        self._header = {"origin": "recorded", **(header or {})}
        self._terminator = Transcript((), self._header).terminator
        redactor = Redactor(identity=not keep_identity)
        recorder = Recorder(redactor, terminator=self._terminator)
        super().__init__(inner, recorder, self._put_steps)
        self._file = -1
        self.error: TranscriptError | None = None
        """Why the recording is not whole: `write` raised it, or the link ended by it."""

    async def open(self, receiver: Receiver) -> None:
        """Open the port and begin the file. Raises PortError; TranscriptError if it exists."""
        begins = self._file < 0
        try:
            if begins:
                self._begin()
            await super().open(receiver)
        except BaseException:
            # Nothing was recorded: the name is free for another try.
            if begins and self._file >= 0:
                self._end(None)
                self._path.unlink(missing_ok=True)
            raise

    def _begin(self) -> None:
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._began = time.monotonic()
            self._put(format_transcript(Transcript((), self._header)))
        except FileExistsError as error:
            raise TranscriptError(
                f"{self._path} exists already", hint="a recording overwrites nothing: name another"
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error

    def finish(self) -> None:
        """End the recording; bytes pass as before. Raises TranscriptError if it is not whole."""
        self._end(None)
        if self.error is not None:
            raise self.error

    def data_received(self, data: bytes) -> None:
        """Record and deliver bytes; on a full disk the link ends, so that nobody waits for them."""
        try:
            super().data_received(data)
        except TranscriptError as error:
            self.connection_lost(error)

    def _note(self, direction: Direction, data: bytes) -> None:
        if self._file >= 0 and self.error is None:
            super()._note(direction, data)

    def _end(self, at_s: float | None) -> None:
        if self._file >= 0:
            if self.error is None:
                with contextlib.suppress(TranscriptError):  # `error` says so
                    super()._end(at_s)
            os.close(self._file)
            self._file = -1

    def _put_steps(self, steps: list[TranscriptStep]) -> None:
        if steps:
            self._put("".join(format_step(step, self._terminator) + "\n" for step in steps))

    def _put(self, text: str) -> None:
        data = text.encode("ascii", "backslashreplace")
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self.error = self._unwritable(error)
            raise self.error from error

    def _unwritable(self, error: OSError) -> TranscriptError:
        return TranscriptError(f"cannot write {self._path}: {error.strerror}")
