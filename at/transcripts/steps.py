"""The steps of a transcript, each a line of its text (`transcript` has an example). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from at.protocol.dialect import Dialect
from at.protocol.errors import TranscriptError
from at.protocol.redaction.command_redaction import without_secrets
from at.protocol.state_machine import IdentityEnum
from at.transcripts.rules import Rule, Varying, escape, read_rules, unescape, write_rules

VERSION, WITH_RULES = "1", "2"
TERMINATOR, RECEIVED_END = b"\r", b"\r\n"
_STEP = re.compile(r"(?:@(\d{1,9}(?:\.\d{1,9})?)\s+)?(\? ?)?([<>]\|?|!)(?: (.*))?", re.DOTALL)
_SECRET = re.compile(rb"\{redacted:[a-z-]+\}\Z")
_USUAL_GARBAGE = 16  # bytes
_READY, _BOOTING = "Ready", "*** Booting nRF Connect SDK ***"
_MORE = f"a transcript that begins with `# transcript: {WITH_RULES}` also has faults and rules"
T = TypeVar("T")


class Direction(IdentityEnum):
    """The direction of a step, or what happens there to the link, to the modem, to the order."""

    SENT = ">"
    RECEIVED = "<"
    CLOSED = "closed"
    SILENCE = "silence"
    """The modem prints nothing for `seconds`."""
    RESET = "reset"
    """The modem restarts; `data` is the line with which it says so."""
    GARBAGE = "garbage"
    """The modem prints `data`, which is no text."""
    ANY_ORDER = "any-order"
    """The commands from here to IN_ORDER may be sent in any order."""
    IN_ORDER = "in-order"


_MARKS = {d.value: d for d in Direction if d not in {Direction.SENT, Direction.RECEIVED}}
_TAKES = {Direction.SILENCE: r"\d{1,6}(?:\.\d{1,6})?", Direction.GARBAGE: r"([1-9]\d{0,4})?"}


@dataclass(frozen=True, slots=True)
class TranscriptStep:
    """One step: `data` are its bytes, whole; `at_s` its time in seconds, None where not noted.

    `line` is its line in the file, 0 where it is in none; two steps are equal whatever it is. In
    the place of a rule, `data` has its example. `optional`: may be left out.
    """

    direction: Direction
    data: bytes
    at_s: float | None = None
    line: int = field(default=0, compare=False)
    varying: tuple[Varying, ...] = ()
    optional: bool = False
    seconds: float = 0.0

    def joined(self, other: TranscriptStep) -> TranscriptStep:
        """Return one step of both, in the direction of this one."""
        size = len(self.data)
        moved = (replace(v, begin=v.begin + size, end=v.end + size) for v in other.varying)
        return replace(self, data=self.data + other.data, varying=(*self.varying, *moved))

    def rewritten(self, rewrite: Callable[[bytes], bytes]) -> TranscriptStep:
        """Return the step with what is no rule rewritten."""
        if not self.varying and rewrite(self.data) == self.data:
            return self
        data, done, varying = b"", 0, []
        for one in self.varying:
            data += rewrite(self.data[done : one.begin])
            size = one.end - one.begin
            varying.append(replace(one, begin=len(data), end=len(data) + size))
            data += self.data[one.begin : one.end]
            done = one.end
        data += rewrite(self.data[done:])
        return replace(self, data=data, varying=tuple(varying))


class StepReader:
    """Reads the steps below a header. Raises TranscriptError, as its method does."""

    def __init__(self, header: Mapping[str, str]) -> None:
        version = header.get("transcript", VERSION)
        if version not in {VERSION, WITH_RULES}:
            raise TranscriptError(
                f"a transcript of version {version!a}; "
                f"this program reads {VERSION} and {WITH_RULES}",
                hint=f"write `# transcript: {WITH_RULES}`, or update cellagent",
            )
        self._has_rules = version == WITH_RULES
        given = header.get("terminator")
        self._terminator = TERMINATOR if given is None else _bytes(unescape, given)
        self._dialect = header.get("dialect")

    def step(self, line: str, number: int) -> TranscriptStep:
        """Return the step of a line, which is line `number`."""
        match = _STEP.fullmatch(line)
        if match is None or (match[2] and not self._has_rules):
            marks = f">, <, >|, <|{', ?>, ?<' * self._has_rules} or !"
            raise TranscriptError(
                f"line {number} is no step: {without_secrets(line[:60])!a}",
                hint=f"a step begins with {marks}, a comment with #",
                line=number,
            )
        mark, text = match[3], match[4] or ""
        at_s = float(match[1]) if match[1] else None
        try:
            if mark == "!":
                return self._mark(match[2] or "", text.strip(), at_s, number)
            return self._line(mark, text, at_s, number, optional=bool(match[2]))
        except TranscriptError as error:
            what = f"line {number}: {error}"
            raise TranscriptError(what, hint=error.hint, line=number) from error

    def _line(
        self, mark: str, text: str, at_s: float | None, number: int, *, optional: bool
    ) -> TranscriptStep:
        varying: tuple[Varying, ...] = ()
        if self._has_rules:
            data, varying = _bytes(read_rules, text)
        else:
            data = _bytes(unescape, text)
        if len(mark) == 1:
            data += self._terminator if mark == ">" else RECEIVED_END
        elif not data:
            raise TranscriptError("a piece without a byte", hint=f"write its bytes behind {mark}")
        if mark[0] == ">":
            _check_ends(data, varying)
        return TranscriptStep(Direction(mark[0]), data, at_s, number, varying, optional)

    def _mark(self, optional: str, text: str, at_s: float | None, number: int) -> TranscriptStep:
        name, _, given = text.partition(" ")
        mark = _MARKS.get(name) if self._has_rules or name == Direction.CLOSED.value else None
        if optional or mark is None or not re.fullmatch(_TAKES.get(mark, ""), given, re.ASCII):
            known = "closed, silence SECONDS, reset, garbage [BYTES], any-order and in-order are"
            raise TranscriptError(
                f"after ! {known if self._has_rules else 'only `closed` is'} known, "
                f"not {(optional + text)[:40]!a}",
                hint="such as `! silence 3`" if self._has_rules else _MORE,
            )
        step = TranscriptStep(mark, b"", at_s, number)
        if mark is Direction.SILENCE:
            return replace(step, seconds=float(given))
        if mark is Direction.GARBAGE:
            return replace(step, data=_garbage(int(given or _USUAL_GARBAGE)))
        return replace(step, data=self._start_line()) if mark is Direction.RESET else step

    def _start_line(self) -> bytes:
        """Return what a modem of this dialect prints when it starts."""
        dialects = [d for d in Dialect if d.value == self._dialect]
        says_ready = any(_READY in dialect.traits.start_lines for dialect in dialects)
        return (_READY if says_ready else _BOOTING).encode() + RECEIVED_END


def _bytes(read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise TranscriptError(
            str(error), hint="a backslash of the text itself is \\\\, any byte is \\xHH"
        ) from error


def _check_ends(data: bytes, varying: tuple[Varying, ...]) -> None:
    """Raise TranscriptError where nothing says where a rule or a secret ends."""
    open_end = varying and varying[-1].end == len(data) and varying[-1].rule is not Rule.IMEI
    if open_end or any(_SECRET.search(data, 0, rule.begin) for rule in varying):
        raise TranscriptError(
            f"nothing says where {'the last rule' if open_end else 'the redacted secret'} ends",
            hint="write what follows behind it, or the whole command behind >",
        )


def _garbage(size: int) -> bytes:
    """Return bytes that are no text and no line end, the same each time."""
    return bytes(0x80 | (number * 53 + 29) % 0x80 for number in range(size))


def format_step(step: TranscriptStep, terminator: bytes, version: str = VERSION) -> str:
    """Write one step as a line, without a line end."""
    time = "" if step.at_s is None else f"@{step.at_s:.6f} "
    if step.direction is Direction.SILENCE:
        return f"{time}! silence {step.seconds:.6f}".rstrip("0").rstrip(".")
    if step.direction is Direction.GARBAGE:
        return f"{time}! garbage {len(step.data)}"
    if step.direction not in {Direction.SENT, Direction.RECEIVED}:
        return f"{time}! {step.direction.value}"
    mark, data = step.direction.value, step.data
    end = terminator if step.direction is Direction.SENT else RECEIVED_END
    if end and data.endswith(end):
        data = data[: -len(end)]
    else:
        mark += "|"
    text = escape(data) if version == VERSION else write_rules(data, step.varying)
    return f"{time}{'?' * step.optional}{mark} {text}".removesuffix(" ")
