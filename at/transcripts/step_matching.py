"""Plays a transcript as the modem would have answered: strictly step by step, or by command."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from at.protocol.counts import counted
from at.protocol.dialect import LEAVE_DATA_MODE, Dialect
from at.protocol.errors import TranscriptError
from at.protocol.line.resynchronisation import POISON, PROBES
from at.protocol.redaction.command_redaction import without_secrets
from at.transcripts.exchanges import Course, split_exchanges
from at.transcripts.redaction import made_up
from at.transcripts.redaction.written_credentials import WrittenCredential, written_credential
from at.transcripts.rules import escape
from at.transcripts.sent_match import WILD, SentMatch
from at.transcripts.steps import Direction, TranscriptStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from at.transcripts.transcript import Transcript

_QUOTE = 0x22
_ENDS = {"\r": "CR", "\n": "LF", "\0": "NUL"}
_LONGEST_SHOWN = 70
_ORDER = frozenset({Direction.ANY_ORDER, Direction.IN_ORDER})
# What a host sets the modem's clock to is another time in each session.
_CLOCK = re.compile(rb'(AT\+CCLK=")[^"]*(?=")', re.IGNORECASE)
_LISTED = re.compile(rb'(%CMNG:\s*(\d+)\s*,\s*(\d+)\s*,\s*")([0-9A-Fa-f]{64})(?=")')
# What a driver asks any modem first, and the answer where the session does not have it.
_SETUP = {b"AT": (), b"AT+CMEE?": (b"+CMEE: 1",), b"AT+CMEE=1": (), b"AT+CMEE=0": ()}
# How it finds its way back after a time-out that the session does not have: it makes half a
# command invalid, and then, but not else, asks what any modem answers.
_ABORTS = tuple(
    left + before + POISON for left in (b"", LEAVE_DATA_MODE) for before in (b"", b'"', b'\x1b"')
)
_PROBES = {text.encode(): (text[2:-1].encode() + b": 0",) for text in PROBES}
_Questions = dict[bytes, tuple[bytes, ...]]


class Divergence(TranscriptError):
    """Something was sent that is not in the recording.

    `line` of `file` (None where the transcript is of none) was to be sent, or is the last one of
    the session; `heard` is the last line that the recorded modem said before, `nearest` the line of
    a later step that is like what was sent, or 0.
    """

    def __init__(self, playback: Playback, sent: bytes) -> None:
        transcript, expected = playback.transcript, playback.expected
        self.sent = shown(sent)
        lines = {recorded_as(step): step.line for step in reversed(expected)}
        nearest = difflib.get_close_matches(self.sent, lines, n=1, cutoff=0.0)
        self.recorded = nearest[0] if nearest else "nothing more"
        ends = transcript.steps[-1].line if transcript.steps else 1
        line = lines[nearest[0]] if nearest else ends
        heard = [s for s in playback.played if s.direction is Direction.RECEIVED and s.data.strip()]
        self.heard = shown(heard[-1].data) if heard else ""
        texts = {recorded_as(step): step.line for step in reversed(playback.remaining)}
        close = difflib.get_close_matches(self.sent, texts, n=1, cutoff=0.6)
        self.nearest = texts[close[0]] if close and texts[close[0]] != line else 0
        hint = f"the nearest step is line {self.nearest}, {close[0]}; " if self.nearest else ""
        others = f", or {counted(len(expected) - 1, 'others')}" if len(expected) > 1 else ""
        super().__init__(
            f"sent {self.sent}, yet line {line} of the transcript has {self.recorded}{others}"
            if expected
            else f"sent {self.sent} after the last step of the transcript, line {ends}",
            hint=hint + "record the session anew, or replay it leniently",
            line=line,
            file=transcript.file,
        )


class Playback:
    """Answers what is sent as the recorded session did. Knows no port and no clock.

    Strict: the first byte that was not in the session raises TranscriptError. Lenient: each command
    is answered as in the session, in any order; an unknown one gets ERROR, AT alone OK. A step may
    say that the link ended there, or that nothing came for a while; that is the caller's to do.
    """

    def __init__(
        self, transcript: Transcript, *, strict: bool = True, answers_setup: bool = False
    ) -> None:
        transcript = self.transcript = _with_any_host(transcript)
        end = self._end = transcript.terminator
        self._aborts, self._usual, self._lost = _questions(end)
        if not strict and all(step.direction is not Direction.SILENCE for step in transcript.steps):
            self._lost = self._usual  # each answer comes at once: a driver needs no other question
        self._setup = self._usual if answers_setup else {}
        self._rest = b""
        """The bytes sent after the current one, for an error message."""
        self._setup_sent = b""
        """The bytes sent so far of a setup question that the session does not have."""
        self._strict = strict
        self._exchanges = split_exchanges(transcript.steps, end)
        self._course = Course(self._exchanges)
        self._current: list[TranscriptStep] = []
        """What is left of the exchange that goes on."""
        self._awaited: dict[int, SentMatch] = {}
        """What may be sent now, by the number of its exchange, as far as it fits."""
        self._await()
        self.played: list[TranscriptStep] = []
        """What a strict replay has had the modem print so far."""
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
        first = self._exchanges[:1]
        return [step for exchange in first if not exchange.asks for step in exchange.steps]

    @property
    def expected(self) -> list[TranscriptStep]:
        """The steps that may be sent next in a strict replay; more than one in any order."""
        if self._current:
            return self._current[:1]
        return [exchange.steps[0] for exchange in self._course.candidates().values()]

    @property
    def remaining(self) -> list[TranscriptStep]:
        """The steps of a strict replay that are still to be sent."""
        later = [s for e in self._course.left if not e.optional for s in e.steps]
        return [s for s in (*self._current, *later) if s.direction is Direction.SENT]

    def sent(self, data: bytes) -> list[TranscriptStep]:
        """Send bytes to the recorded modem; return its answer. Raises TranscriptError."""
        steps: list[TranscriptStep] = []
        if self._strict and not self._setup_sent and (at_once := self._at_once(data)) is not None:
            return at_once
        for index, byte in enumerate(data):
            self._rest = data[index + 1 :]
            steps += self._byte_strict(byte) if self._strict else self._byte_lenient(byte)
        return steps

    def _until_sent(self) -> list[TranscriptStep]:
        """Return what comes until something is to be sent."""
        steps: list[TranscriptStep] = []
        while self._current and self._current[0].direction is not Direction.SENT:
            steps.append(self._current.pop(0))
        if not self._current:
            steps += self._course.due()
        self._await()
        steps = self._with_digests(steps)
        self.played += steps
        return steps

    def _await(self) -> None:
        """Wait for what may be sent now, from its first byte on."""
        if self._current:
            self._awaited = {-1: SentMatch(self._current[0], self._end)}
            return
        candidates = self._course.candidates().items()
        self._awaited = {number: SentMatch(each.steps[0], self._end) for number, each in candidates}

    def _at_once(self, data: bytes) -> list[TranscriptStep] | None:
        """Answer a line that is awaited as it stands, or a setup question; None: byte by byte."""
        fixed = {number: match.fixed for number, match in self._awaited.items()}
        for number, text in fixed.items():
            if text == data:
                return self._step_matched(number, self._awaited[number])
        if data not in self._setup or any(
            text is None or text.startswith(data) or data.startswith(text)
            for text in fixed.values()
        ):
            return None
        return [self._answered(data)]

    def _answered(self, sent: bytes) -> TranscriptStep:
        """Return the answer to what a driver asks by itself."""
        lines = self._setup[sent]
        if sent in self._aborts:
            self._setup = self._lost
        return _setup_answer(self.transcript, lines)

    def _byte_strict(self, byte: int) -> list[TranscriptStep]:
        if self._setup_sent:
            return self._byte_of_setup(self._setup_sent + bytes([byte]))
        fitting = {number: match for number, match in self._awaited.items() if match.take(byte)}
        if not fitting:
            begun = next((match.begun for match in self._awaited.values()), b"")
            return self._byte_of_setup(begun + bytes([byte]))
        self._awaited = fitting
        whole = [number for number, match in fitting.items() if match.whole]
        if not whole:
            return []
        number = min(whole, key=lambda number: bool(fitting[number].step.varying))
        return self._step_matched(number, fitting[number])

    def _step_matched(self, number: int, match: SentMatch) -> list[TranscriptStep]:
        self._note_written(match.step.data, bytes(match.sent))
        if not self._current:
            self._current = list(self._course.candidates()[number].steps)
            self._course.take(number)
        self._current.pop(0)
        if self._setup:
            self._setup = self._usual
        return self._until_sent()

    def _byte_of_setup(self, sent: bytes) -> list[TranscriptStep]:
        """Send a byte that the session does not have: of a setup question, or an error."""
        if not any(command.startswith(sent) for command in self._setup):
            raise Divergence(self, sent + self._rest)
        is_whole = sent in self._setup
        self._setup_sent = b"" if is_whole else sent
        if not is_whole:
            return []
        self._await()
        return [self._answered(sent)]

    def _byte_lenient(self, byte: int) -> list[TranscriptStep]:
        self._line.append(byte)
        if byte == _QUOTE:
            self._quoted = not self._quoted
        if self._quoted or not self._line.endswith(self._end):
            return []
        command = bytes(self._line[: -len(self._end)]).strip()
        self._line.clear()
        if not command:
            return []
        known: TranscriptStep | None = TranscriptStep(Direction.SENT, command)
        if known not in self._answers:
            known = next((k for k in self._answers if spans(k, command) is not None), None)
        if known is None:
            if command + self._end in self._setup:
                return [self._answered(command + self._end)]
            final = b"OK\r\n" if command.upper() == b"AT" else b"ERROR\r\n"
            return [TranscriptStep(Direction.RECEIVED, final)]
        self._note_written(known.data, command)
        recorded = self._answers[known]
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


@cache
def _questions(end: bytes) -> tuple[_Questions, _Questions, _Questions]:
    """Return what a driver asks by itself, with the lines of its answers.

    What aborts a command, what is asked as a rule, and what is asked behind an abort.
    """
    known: _Questions = {name + end: (*lines, b"OK") for name, lines in _SETUP.items()}
    aborts: _Questions = {text + end: (b"ERROR",) for text in _ABORTS}
    probes: _Questions = {text + end: (*told, b"OK") for text, told in _PROBES.items()}
    return aborts, known | aborts, probes | known | aborts


def _with_any_host(transcript: Transcript) -> Transcript:
    """Return a transcript whose sent steps fit a host with another clock and the real identity.

    A host has an identity from the recorded modem, and then it is the made-up one, or of itself.
    """

    def fitting(data: bytes) -> bytes:
        data = _CLOCK.sub(rb"\1{redacted:time}", data)
        return made_up.SENT.sub(b"{redacted:identity}", data)

    return replace(
        transcript,
        steps=tuple(
            step.rewritten(fitting) if step.direction is Direction.SENT else step
            for step in transcript.steps
        ),
    )


def _setup_answer(transcript: Transcript, lines: tuple[bytes, ...]) -> TranscriptStep:
    """Return the answer to a setup question as the recorded firmware would print it."""
    dialect = transcript.header.get("dialect")
    *told, final = (line + b"\r\n" for line in lines)
    body = b"".join(told)
    if dialect and any(each.value == dialect and each.traits.blank_lines for each in Dialect):
        body = (b"\r\n" + body if body else b"") + b"\r\n"
    return TranscriptStep(Direction.RECEIVED, body + final)


def _answers(transcript: Transcript) -> dict[TranscriptStep, list[list[TranscriptStep]]]:
    """Return what came back after each command, each time it was sent."""
    answers: dict[TranscriptStep, list[list[TranscriptStep]]] = {}
    current: list[TranscriptStep] | None = None
    pending = TranscriptStep(Direction.SENT, b"")
    for step in transcript.steps:
        if step.direction is Direction.SENT:
            pending = pending.joined(step)
            if pending.data.endswith(transcript.terminator):
                data = pending.data.removesuffix(transcript.terminator)
                command = replace(pending, data=data if pending.varying else data.strip())
                current = []
                answers.setdefault(command, []).append(current)
                pending = TranscriptStep(Direction.SENT, b"")
        elif current is not None and step.direction not in _ORDER:
            current.append(step)
    return answers


def spans(recorded: TranscriptStep, data: bytes) -> list[tuple[int, int]] | None:
    """Return where the rules of a step are in `data`, which may have others; None: another step."""
    if not recorded.varying and WILD.search(recorded.data) is None:
        return [] if recorded.data == data else None
    pattern, done = b"", 0
    for varying in recorded.varying:
        literal = _with_secrets(recorded.data[done : varying.begin])
        pattern += literal + b"(%b)" % varying.rule.pattern
        done = varying.end
    match = re.fullmatch(pattern + _with_secrets(recorded.data[done:]), data, re.DOTALL)
    if match is None or not all(
        varying.rule.holds(text)
        for varying, text in zip(recorded.varying, match.groups(), strict=True)
    ):
        return None
    return [match.span(n + 1) for n in range(len(recorded.varying))]


def _with_secrets(data: bytes) -> bytes:
    """Return a pattern of bytes in which secrets were redacted."""
    pattern, done = b"", 0
    for wild in WILD.finditer(data):
        in_quotes = data[wild.end() : wild.end() + 1] == b'"'
        secret = b".{%b}" % wild[2] if wild[2] else b'[^"]*' if in_quotes else b".*"
        pattern += re.escape(data[done : wild.start()]) + secret
        done = wild.end()
    return pattern + re.escape(data[done:])


def recorded_as(step: TranscriptStep) -> str:
    """Return a step as `shown`, with its rules in place of their examples."""
    text, done = b"", 0
    for varying in step.varying:
        text += step.data[done : varying.begin] + varying.text(step.data).encode()
        done = varying.end
    return shown(text + step.data[done:])


def shown(data: bytes) -> str:
    """Return the beginning of a step as a message shows it, in backquotes, without its secrets.

    The end of its line is named behind them: spelt out, it would pass for a part of the command.
    """
    text = data[:_LONGEST_SHOWN].decode("latin-1")
    line = text.rstrip("".join(_ENDS))
    more = "..." if len(data) > _LONGEST_SHOWN else ""
    ends = "".join(f" {_ENDS[sign]}" for sign in text[len(line) :])
    return f"`{escape(without_secrets(line).encode('latin-1'))}{more}`{ends}"
