"""Plays a transcript as the modem would have answered: strictly step by step, or by command."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from at.protocol.command_redaction import MARKER, without_secrets
from at.protocol.dialect import Dialect
from at.protocol.errors import TranscriptError
from at.transcripts import made_up
from at.transcripts.transcript import Direction, Transcript, TranscriptStep, commands, escape
from at.transcripts.written_credentials import WrittenCredential, written_credential

if TYPE_CHECKING:
    from collections.abc import Sequence

_WILD = re.compile(MARKER.pattern.encode())
_QUOTE = 0x22
_ENDS = {"\r": "CR", "\n": "LF", "\0": "NUL"}
_LONGEST_SHOWN = 70
# What a host sets the modem's clock to is another time in each session.
_CLOCK = re.compile(rb'(AT\+CCLK=")[^"]*(?=")', re.IGNORECASE)
_LISTED = re.compile(rb'(%CMNG:\s*(\d+)\s*,\s*(\d+)\s*,\s*")([0-9A-Fa-f]{64})(?=")')
# What a driver asks any modem first, and the answer where the session does not have it.
_SETUP = {b"AT": (), b"AT+CMEE?": (b"+CMEE: 1",), b"AT+CMEE=1": (), b"AT+CMEE=0": ()}


class Divergence(TranscriptError):
    """Something was sent that is not in the recording.

    `line` of `file` (None where the transcript is of none) was to be sent; `heard` is the last line
    that the recorded modem said before, `nearest` the line of a later step that is like it, or 0.
    """

    def __init__(self, playback: Playback, sent: bytes) -> None:
        transcript, step = playback.transcript, playback.remaining[0]
        self.file, self.line = transcript.file, step.line
        self.recorded, self.sent = shown(step.data), shown(sent)
        said = [s for s in transcript.steps if s.line < step.line or not step.line]
        heard = [s for s in said if s.direction is Direction.RECEIVED and s.data.strip()]
        self.heard = shown(heard[-1].data) if heard else ""
        texts = {shown(s.data): s.line for s in reversed(playback.remaining)}
        close = difflib.get_close_matches(self.sent, texts, n=1, cutoff=0.6)
        self.nearest = texts[close[0]] if close and texts[close[0]] != self.line else 0
        nearest = f"the nearest step is line {self.nearest}, {close[0]}; " if self.nearest else ""
        super().__init__(
            f"sent {self.sent}, yet line {self.line} of the transcript has {self.recorded}",
            hint=nearest + "record the session anew, or replay it leniently",
        )


class Playback:
    """Answers what is sent as the recorded session did. Knows no port and no clock.

    Strict: the first byte that was not in the session raises TranscriptError. Lenient: each command
    is answered as in the session, in any order; an unknown one gets ERROR, AT alone OK. A step may
    say that the link ended there; the caller decides whether it ends.
    """

    def __init__(
        self, transcript: Transcript, *, strict: bool = True, answers_setup: bool = False
    ) -> None:
        transcript = self.transcript = _with_any_host(transcript)
        end = transcript.terminator
        self._setup = {
            command + end: _setup_answer(transcript, lines)
            for command, lines in _SETUP.items()
            if answers_setup
        }
        self._rest = b""
        """The bytes sent after the current one, for an error message."""
        self._setup_sent = b""
        """The bytes sent so far of a setup question that the session does not have."""
        self._steps = transcript.steps
        self._strict = strict
        self._position = 0
        self._matched = bytearray()
        """The bytes so far of the current step, as they are in the transcript."""
        self._secret_bytes = self._secret_quotes = 0
        """How many bytes, and quotes, were sent so far of a secret that was redacted there."""
        self._sent = bytearray()
        """The bytes so far of the current step, as they were sent."""
        self._digests: dict[WrittenCredential, bytes] = {}
        """The digest of each credential that was sent, where the transcript has a redacted one."""
        self._line = bytearray()
        self._quoted = False
        self._answers = _answers(transcript) if not strict else {}
        self._asked: defaultdict[bytes, int] = defaultdict(int)

    def first_steps(self) -> list[TranscriptStep]:
        """Return the steps that precede the first sent one."""
        if self._strict:
            return self._until_sent()
        first = next(
            (i for i, s in enumerate(self._steps) if s.direction is Direction.SENT),
            len(self._steps),
        )
        return list(self._steps[:first])

    @property
    def remaining(self) -> list[TranscriptStep]:
        """The steps of a strict replay that are still to be sent."""
        return [s for s in self._steps[self._position :] if s.direction is Direction.SENT]

    def sent(self, data: bytes) -> list[TranscriptStep]:
        """Send bytes to the recorded modem; return its answer. Raises TranscriptError."""
        steps: list[TranscriptStep] = []
        for index, byte in enumerate(data):
            self._rest = data[index + 1 :]
            steps += self._byte_strict(byte) if self._strict else self._byte_lenient(byte)
        return steps

    def _until_sent(self) -> list[TranscriptStep]:
        start = self._position
        while (
            self._position < len(self._steps)
            and self._steps[self._position].direction is not Direction.SENT
        ):
            self._position += 1
        return self._with_digests(self._steps[start : self._position])

    def _byte_strict(self, byte: int) -> list[TranscriptStep]:
        if self._setup_sent:
            return self._byte_of_setup(self._setup_sent + bytes([byte]))
        if self._position >= len(self._steps):
            return self._byte_of_setup(bytes([byte]))
        expected = self._steps[self._position].data
        self._sent.append(byte)
        wild = _WILD.match(expected, len(self._matched))
        if wild is not None:
            if not self._ends_secret(byte, wild):
                return []
            self._matched += wild.group()
            self._secret_bytes = self._secret_quotes = 0
            if wild[2] or wild.end() == len(expected):
                return self._step_matched() if wild.end() == len(expected) else []
        if self._matched == expected or expected[len(self._matched)] != byte:
            return self._byte_of_setup(bytes(self._matched) + bytes([byte]))
        self._matched.append(byte)
        return self._step_matched() if len(self._matched) == len(expected) else []

    def _step_matched(self) -> list[TranscriptStep]:
        self._note_written(self._steps[self._position].data, bytes(self._sent))
        self._matched.clear()
        self._sent.clear()
        self._position += 1
        return self._until_sent()

    def _ends_secret(self, byte: int, wild: re.Match[bytes]) -> bool:
        """Add a byte to the redacted secret; return whether that is complete.

        A secret of known length ends with its last byte, any other before the byte that follows it
        in the transcript; in a secret that has quotes of its own, behind them.
        """
        if wild[2]:
            self._secret_bytes += 1
            return self._secret_bytes == int(wild[2])
        follows = wild.string[wild.end() : wild.end() + 1] or self.transcript.terminator[-1:]
        quotes = self._secret_quotes
        if follows in b"\r\n":  # which end no line while a quote is open, here or before
            quotes += wild.string.count(b'"', 0, wild.start())
        if bytes([byte]) == follows and (byte == _QUOTE or quotes % 2 == 0):
            return True
        self._secret_quotes += byte == _QUOTE
        return False

    def _byte_of_setup(self, sent: bytes) -> list[TranscriptStep]:
        """Send a byte that the session does not have: of a setup question, or an error."""
        if not any(command.startswith(sent) for command in self._setup):
            raise self._mismatch(sent)
        answer = self._setup.get(sent)
        self._setup_sent = b"" if answer else sent
        if answer is None:
            return []
        self._matched.clear()
        self._sent.clear()
        return [answer]

    def _mismatch(self, begun: bytes) -> TranscriptError:
        sent = begun + self._rest
        if self._position >= len(self._steps):
            return TranscriptError(f"sent {shown(sent)} after the last step of the transcript")
        return Divergence(self, sent)

    def _byte_lenient(self, byte: int) -> list[TranscriptStep]:
        terminator = self.transcript.terminator
        self._line.append(byte)
        if byte == _QUOTE:
            self._quoted = not self._quoted
        if self._quoted or not self._line.endswith(terminator):
            return []
        command = bytes(self._line[: -len(terminator)]).strip()
        self._line.clear()
        if not command:
            return []
        recorded = self._answers.get(command)
        if recorded is None:
            fitting = next((known for known in self._answers if _fits(known, command)), b"")
            recorded = self._answers.get(fitting)
            self._note_written(fitting, command)
        if recorded is None and command + terminator in self._setup:
            return [self._setup[command + terminator]]
        if recorded is None:
            final = b"OK\r\n" if command.upper() == b"AT" else b"ERROR\r\n"
            return [TranscriptStep(Direction.RECEIVED, final)]
        turn = min(self._asked[command], len(recorded) - 1)
        self._asked[command] += 1
        return self._with_digests(recorded[turn])

    def _note_written(self, recorded: bytes, sent: bytes) -> None:
        """Note that a credential was sent in place of the redacted one in the transcript."""
        was, now = written_credential(recorded), written_credential(sent)
        if was is not None and now is not None and was != now:
            self._digests[was] = now.digest

    def _with_digests(self, steps: Sequence[TranscriptStep]) -> list[TranscriptStep]:
        """Return steps in which the modem lists the digests of what was sent to it now."""
        if not self._digests:
            return list(steps)

        def listed(match: re.Match[bytes]) -> bytes:
            recorded = WrittenCredential(match[2], match[3], match[4].upper())
            return match[1] + self._digests.get(recorded, match[4])

        return [replace(step, data=_LISTED.sub(listed, step.data)) for step in steps]


def _with_any_host(transcript: Transcript) -> Transcript:
    """Return a transcript whose sent steps fit a host with another clock and the real identity.

    A host has an identity from the recorded modem, and then it is the made-up one, or of itself.
    """

    def fitting(step: TranscriptStep) -> TranscriptStep:
        if step.direction is not Direction.SENT:
            return step
        data = _CLOCK.sub(rb"\1{redacted:time}", step.data)
        return replace(step, data=made_up.SENT.sub(b"{redacted:identity}", data))

    return replace(transcript, steps=tuple(map(fitting, transcript.steps)))


def _setup_answer(transcript: Transcript, lines: tuple[bytes, ...]) -> TranscriptStep:
    """Return the answer to a setup question as the recorded firmware would print it."""
    dialect = transcript.header.get("dialect")
    body = b"".join(line + b"\r\n" for line in lines)
    if any(known.value == dialect and known.traits.blank_lines for known in Dialect):
        body = (b"\r\n" + body if body else b"") + b"\r\n"
    return TranscriptStep(Direction.RECEIVED, body + b"OK\r\n")


def _answers(transcript: Transcript) -> dict[bytes, list[list[TranscriptStep]]]:
    """Return what came back after each command, each time it was sent."""
    ends = {
        id(step): sent.removesuffix(transcript.terminator).strip()
        for step, sent in commands(transcript)
    }
    answers: dict[bytes, list[list[TranscriptStep]]] = {}
    current: list[TranscriptStep] | None = None
    for step in transcript.steps:
        if step.direction is Direction.SENT:
            command = ends.get(id(step))
            if command is not None:
                current = []
                answers.setdefault(command, []).append(current)
        elif current is not None:
            current.append(step)
    return answers


def _fits(recorded: bytes, command: bytes) -> bool:
    """Return whether `command` fits `recorded`, whose secrets were redacted."""
    pattern, done = b"", 0
    for wild in _WILD.finditer(recorded):
        in_quotes = recorded[wild.end() : wild.end() + 1] == b'"'
        secret = b".{%b}" % wild[2] if wild[2] else b'[^"]*' if in_quotes else b".*"
        pattern += re.escape(recorded[done : wild.start()]) + secret
        done = wild.end()
    if not done:
        return False
    return re.fullmatch(pattern + re.escape(recorded[done:]), command, re.DOTALL) is not None


def shown(data: bytes) -> str:
    """Return the beginning of a step as a message shows it, in backquotes, without its secrets.

    The end of its line is named behind them: spelt out, it would pass for a part of the command.
    """
    text = data[:_LONGEST_SHOWN].decode("latin-1")
    line = text.rstrip("".join(_ENDS))
    more = "..." if len(data) > _LONGEST_SHOWN else ""
    ends = "".join(f" {_ENDS[sign]}" for sign in text[len(line) :])
    return f"`{escape(without_secrets(line).encode('latin-1'))}{more}`{ends}"
