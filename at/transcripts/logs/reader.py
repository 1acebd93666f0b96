"""Reads a log of a modem's session, of any shape that `shapes` knows. Pure.

Bytes become lines, each with its direction, and its time where the log has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice

from at.protocol.errors import TranscriptError
from at.protocol.line.items import final_result
from at.transcripts.logs import shapes
from at.transcripts.logs.hex_dumps import without_dumps
from at.transcripts.logs.shapes import COMMAND, KIT_LOG, KIT_MARK, NAMED_ANSWER, Rest, Shape
from at.transcripts.logs.terminal import shown
from at.transcripts.logs.wrapping import literals, rejoined, straight, uncut, unwrapped
from at.transcripts.payloads import Payloads, Phase
from at.transcripts.steps import Direction
from at.transcripts.transcript import Transcript, parse_transcript

_NO_CHARACTER = re.compile("[\x01-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")
_LINE_END = re.compile(r"\r\n|\n|\r")
_TRANSCRIPT = re.compile(r"\s*# transcript: ")
# What no line of a key or of a text looks like: a quote that is open there was never closed.
_NEW_COMMAND = re.compile(r"AT[+%#*^][A-Z][A-Z0-9_]*(?:=.*|\?)?", re.IGNORECASE | re.DOTALL)
_READ = (
    "put TX: before what was sent and RX: before what was received, or write a table headed "
    "time,direction,data; docs/reference/transcripts.md lists all forms that are read"
)
_READ_ELSEWHERE = (
    (re.compile(r"\bMC:[A-Za-z0-9+/]{4}"), "`cellagent capture chunks LOG` reads its chunks"),
    (re.compile(r"#CD:"), "`cellagent capture coredump LOG --out FILE` reads its core dump"),
)
"""What a kit's console may hold beside no AT line, and what reads it."""
_WHICH_LOG = "give what a terminal or the kit's firmware wrote, or a transcript"
_COMMAND_WITHIN = re.compile(r"\bAT[+%#][A-Z]+", re.IGNORECASE)
_AT_WITHIN = re.compile(r"AT|[+%#*^][A-Z]|OK|ERROR", re.IGNORECASE)
# The last line of a dump in hex: an offset, perhaps with a byte or two.
_END_OF_DUMP = re.compile(r"[0-9a-f]{6,16}(?:[: ] *(?:[0-9a-f]{2}){1,2}\b.*)?", re.IGNORECASE)
_SAMPLE_LINES = 2000  # of these the shape is told: a long log is not read by every row
_PEEKED, _LONGEST_LINE = 4096, 16384
_LONGEST_QUOTE = 500
"""Lines after which a quote that is open was a stray one."""
# Looked up for each line by each shape: a set of members hashes them in Python.
_OF_THE_KIT = (Rest.BY_LOOK, Rest.RECEIVED)
_TOLD_BY_LOOK = (Rest.BY_LOOK, Rest.LITERALS)
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_DAY_S = 86400


class Side(Enum):
    """The direction of a line; LOG: a log line of the kit, or of the tool that kept the log."""

    SENT = "sent"
    RECEIVED = "received"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, without its mark, its time and its end.

    A quoted text over several lines is one, with LF between them. `at_s` are seconds of the day or
    since the kit or the log began, None where the log has no time there.
    """

    side: Side
    text: str
    at_s: float | None = None
    number: int = field(default=0, compare=False)
    """The line of the file on which it begins, from 1; 0 where the log is a transcript."""


@dataclass(frozen=True, slots=True)
class ReadLog:
    """The lines of a log. `shape` is the name of its shape; `header` that of a transcript.

    `of_the_kit`: its log lines came over the port, like all that is not marked as sent.
    """

    lines: tuple[LogLine, ...]
    shape: str
    of_the_kit: bool
    header: Mapping[str, str] = field(default_factory=dict)


def seconds_between(before_s: float, now_s: float) -> float:
    """Return the seconds from one time of a log to a later one, also over midnight.

    Less than 0 where the clock began anew, at a restart of the kit, or was put back.
    """
    passed_s = now_s - before_s
    return passed_s + _DAY_S if passed_s < -_DAY_S / 2 else passed_s


def begins_exchange(text: str) -> bool:
    """Return whether a line is a command, an answer with a name or a final result."""
    is_answer = NAMED_ANSWER.match(text) is not None or final_result(text) is not None
    return is_answer or COMMAND.match(text) is not None


def read_lines(file: BufferedReader) -> Iterator[LogLine]:
    """Yield the lines of any text, a modem's log or not, as they are read; long ones in pieces.

    Raises TranscriptError if it is no text, or a dump in hex and nothing else.
    """
    begin = file.peek(_PEEKED)
    boms = [(bom, encoding) for bom, encoding in _BOMS if _is_utf_16(begin, bom)]
    if not boms and b"\0" in begin and _is_binary(begin):
        raise TranscriptError("this is no text: a log is needed", hint=_WHICH_LOG)
    if _TRANSCRIPT.match(begin.decode("utf-8", "replace")):
        yield from _steps(parse_transcript(file.read().decode("utf-8", "surrogateescape").lstrip()))
        return
    encoding, errors = (boms[0][1], "replace") if boms else ("utf-8", "surrogateescape")
    text = TextIOWrapper(file, encoding, errors)
    heads = _heads(iter(lambda: text.readline(_LONGEST_LINE), ""))
    first = list(islice(heads, 10 * _SAMPLE_LINES))
    others = [head for head in first if not shapes.HEX_DUMP.line.match(head.text)]
    if len(others) < len(first) and all(_END_OF_DUMP.fullmatch(head.text) for head in others):
        raise TranscriptError(
            f"this looks like {shapes.HEX_DUMP.name}: a log is needed", hint=_WHICH_LOG
        )
    shape = _shape_of(first)
    yield from _Joiner(shape, _with_ends(shape, first)).lines(chain(first, heads))


def _is_utf_16(data: bytes, bom: bytes) -> bool:
    """Return whether a text has the other byte of its commands, too: noise may look like a mark."""
    return data.startswith(bom) and 8 * data.count(b"\0") >= len(data) - len(bom)


def _is_binary(begin: bytes) -> bool:
    """Return whether more than a tenth is no character of a log; a NUL says nothing.

    A serial line breaks into NULs as its other end restarts, and UTF-16 has one in each character.
    """
    text = begin.replace(b"\0", b"").decode("utf-8", "replace")
    return 10 * len(_NO_CHARACTER.findall(text)) > len(text)


def _heads(lines: Iterable[str]) -> Iterator[_Head]:
    """Yield the lines that say something. Raises TranscriptError if there is none."""
    head = None
    screen = ((number, shown(line)) for number, line in unwrapped(lines))
    for number, line in without_dumps(rejoined(uncut(screen))):
        head = _without_leads(line, number)
        yield head
    if head is None:
        raise TranscriptError("the log is empty: no line that was sent or received")


def _shape_of(heads: Iterable[_Head]) -> Shape:
    sample = list(islice((head for head in heads if _AT_WITHIN.search(head.text)), _SAMPLE_LINES))
    return max(shapes.SHAPES, key=lambda shape: _score(shape, sample))


def read_log(data: bytes) -> ReadLog:
    """Return what a log says. Raises TranscriptError, which names the kind that it looks like."""
    text = _decoded(data)
    if _TRANSCRIPT.match(text):
        transcript = parse_transcript(text.lstrip())
        return ReadLog(tuple(_steps(transcript)), "transcript", True, transcript.header)
    heads = list(_heads(map(straight, _LINE_END.split(text))))
    shape = _shape_of(heads)
    _refuse_foreign(shape, heads)
    lines = _Joiner(shape, _with_ends(shape, heads)).lines(heads)
    return ReadLog(tuple(lines), shape.name, shape.rest in _OF_THE_KIT)


def _decoded(data: bytes) -> str:
    for bom, encoding in _BOMS:
        if _is_utf_16(data, bom):
            if len(data) % 2:
                raise TranscriptError(
                    "the log is UTF-16 with half a character: it was cut or damaged",
                    hint="copy it again, or save it as UTF-8",
                )
            return data[2:].decode(encoding, "replace").replace("\0", "")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class _Head:
    """A line of the file: what stands behind time, level and channel, and the whole."""

    text: str
    log: str
    """The whole line of the kit's log, if `text` is what stands behind a mark in it."""
    is_log: bool
    """Whether the line is one of the kit's log, also where `text` is behind a mark in it."""
    at_s: float | None
    raw: str
    number: int


def _without_leads(line: str, number: int) -> _Head:
    text = raw = line.replace("\x00", "")
    log, at_s = "", None
    leads = list(shapes.LEADS)
    while not (kit_log := KIT_LOG.match(text)) or KIT_MARK.match(text):
        log = log or (text.strip() if kit_log else "")
        match = next(filter(None, (lead.match(text) for lead in leads)), None)
        if match is None:
            break
        leads.remove(match.re)  # each stands there once
        text = text[match.end() :]
        at_s = _seconds(match) if at_s is None else at_s
    if kit_log and at_s is None and kit_log[1] and (clock := shapes.CLOCK.match(kit_log[1])):
        at_s = _seconds(clock)
    text = text.strip()
    is_log = bool(log or KIT_LOG.match(text))
    return _Head(text, log, is_log, at_s, raw, number)


def _seconds(match: re.Match[str]) -> float | None:
    named = match.groupdict()
    if named.get("plain"):
        return float(named["plain"])
    if named.get("millis"):
        return int(named["millis"]) / 1000
    if "hours" not in named:
        return None
    fraction = float(f"0.{named['fraction'] or '0'}{named.get('micros') or ''}")
    hours = int(named["hours"])
    if half := named.get("half"):
        hours = hours % 12 + 12 * (half == "P")
    whole = hours * 3600 + int(named["minutes"]) * 60 + int(named["seconds"])
    return whole + fraction


def _score(shape: Shape, heads: Iterable[_Head]) -> tuple[int, bool]:
    """Return how well a shape explains a log: commands are sent, answers are received.

    Of two that do so equally well it is the one with a mark of a command: the other takes its echo.
    """
    score, last_sent, has_marks = 0, "", False
    for by_mark, marked in (one for head in heads for one in _marked(shape, head)):
        has_marks |= by_mark is Side.SENT
        side, text = _by_rest(shape, by_mark, marked)
        if side is Side.LOG:  # most lines by most shapes
            continue
        is_command = COMMAND.match(text) is not None
        is_answer = NAMED_ANSWER.match(text) is not None or final_result(text) is not None
        if side is Side.SENT:  # a command that firmware logs, too, is one
            score += 2 * (is_command and text != last_sent) - is_answer
            last_sent = text
        else:
            score += is_answer - (is_command and text != last_sent)  # an echo is no fault
            last_sent = "" if is_answer else last_sent
    return score, has_marks


def _sides(shape: Shape, heads: Iterable[_Head]) -> Iterator[tuple[Side, str]]:
    """Yield the side of each line, marked or not, and the line without its mark."""
    for head in heads:
        yield from (_by_rest(shape, side, text) for side, text in _marked(shape, head))


def _marked(shape: Shape, head: _Head) -> list[tuple[Side | None, str]]:
    """Return the side that a line's mark says, None if it has none, and the line without it.

    Literals of Python may be several. A mark in the kit's own log says nothing where the lines that
    have none are the port's.
    """
    if head.log and shape.rest in _OF_THE_KIT:
        return [(Side.LOG, head.log)]
    line = head.text
    if shape.rest is Rest.LITERALS and (texts := literals(line)):
        return [
            (Side[direction.name], text) if direction else (None, text.strip())
            for direction, text in texts
        ]
    patterns = ((Side.SENT, shape.sent), (Side.RECEIVED, shape.received), (Side.LOG, shape.noise))
    for side, pattern in patterns:
        if pattern is not None and (match := pattern.fullmatch(line)):
            text = match["text"].strip()
            if side is Side.SENT and (pair := shapes.ANSWERED.fullmatch(text)):
                answers = [answer for _, answer in literals(pair[2])] or [pair[2]]
                return [(side, pair[1]), *((Side.RECEIVED, answer.strip()) for answer in answers)]
            listed = literals(text) if text.startswith("[") else []
            return [(side, one.strip()) for _, one in listed] or [(side, text)]
    is_log = shape.rest is Rest.LITERALS or head.is_log
    return [(Side.LOG if is_log else None, head.log or line)]


def _with_ends(shape: Shape, heads: list[_Head]) -> set[Side]:
    """Return the sides whose line ends are spelt out: what has none there is a part of a line."""
    return {
        side
        for head in heads[:_SAMPLE_LINES]
        for side, text in _marked(shape, head)
        if side in {Side.SENT, Side.RECEIVED} and shapes.ends_spelt(text)
    }


def _by_rest(shape: Shape, side: Side | None, text: str) -> tuple[Side, str]:
    """Return the side of a line, marked or not, and what it says."""
    text = text.strip()
    if side is not None:
        return side, text
    if shape.rest in _TOLD_BY_LOOK:
        return Side.SENT if COMMAND.match(text) else Side.RECEIVED, text
    return Side.RECEIVED if shape.rest is Rest.RECEIVED else Side.LOG, text


def _refuse_foreign(shape: Shape, heads: list[_Head]) -> None:
    """Raise TranscriptError for a log of another kind, or of no kind that is known."""
    at_lines = sum(
        side is not Side.LOG
        and not any(mark.match(text) for mark, _ in _READ_ELSEWHERE)
        and bool(COMMAND.match(text) or NAMED_ANSWER.match(text))
        for side, text in _sides(shape, heads)
    )
    others = [head for head in heads if not head.is_log]
    kinds = [
        (sum(bool(kind.line.match(one.raw) or kind.line.match(one.text)) for one in others), kind)
        for kind in shapes.FOREIGN
        if kind.mixed or not at_lines
    ]
    count, kind = max(kinds, key=lambda kind: kind[0])
    elsewhere = (
        way for mark, way in _READ_ELSEWHERE if any(mark.search(head.raw) for head in heads)
    )
    hint = next(elsewhere, _READ)
    if count > at_lines:
        raise TranscriptError(
            f"this looks like {kind.name}: no log of a modem's AT commands that can be read",
            hint=hint,
        )
    if at_lines or len(others) < len(heads):
        return
    if within := next((head for head in heads if _COMMAND_WITHIN.search(head.text)), None):
        raise TranscriptError(
            f"line {within.number} holds an AT command, but in no form that is known", hint=_READ
        )
    raise TranscriptError(
        "the log holds no line that was sent or received: no AT command, no answer", hint=hint
    )


class _Joiner:
    """Makes records of the lines of a file: spelt ends and words divide, open quotes join."""

    def __init__(self, shape: Shape, with_ends: set[Side]) -> None:
        self._shape = shape
        self._with_ends = with_ends
        self._payloads = Payloads()
        self._open: dict[Side, tuple[list[str], _Head]] = {}
        """What stands in a quote that is open, by side, and the line on which it begins."""
        self._marked_sent = ""
        """What was last marked as sent: the same without a mark is its echo."""
        self._received = False
        """Whether the last line was: one without a mark that has a spelt end goes on with it."""

    def lines(self, heads: Iterable[_Head]) -> Iterator[LogLine]:
        """Yield the records, oldest first."""
        for mark, text, head in self._whole(heads):
            goes_on = mark is None and self._received and shapes.ends_spelt(text)
            side = Side.RECEIVED if goes_on else mark
            self._received = side is Side.RECEIVED
            for piece, answers in _pieces(side, text):
                later = Side.RECEIVED if answers else side
                yield from self._line(later, piece, head)
        for side in tuple(self._open):
            yield from self._end(side)

    def _whole(self, heads: Iterable[_Head]) -> Iterator[tuple[Side | None, str, _Head]]:
        """Yield what the lines hold; what a port gave in parts, and a logger wrote so, is whole."""
        begun: tuple[Side, str, _Head] | None = None
        for head in heads:
            for side, part in _marked(self._shape, head):
                first, text = head, part
                if begun and side in {Side.SENT, Side.RECEIVED}:
                    if side is begun[0] and _goes_on(begun[1], part):
                        text, first = begun[1] + part, begun[2]
                    else:
                        yield begun
                    begun = None
                is_data = side is Side.SENT and self._payloads.phase is Phase.DATA
                if side in self._with_ends and not is_data and not shapes.ends_spelt(part):
                    assert side is not None
                    begun = side, text, first
                else:
                    yield side, text, first
        if begun:
            yield begun

    def _line(self, side: Side | None, text: str, head: _Head) -> Iterator[LogLine]:
        within = side or next(iter(self._open), None)
        is_sent_answered = within is Side.SENT and final_result(text) is not None
        if within and (is_sent_answered or _NEW_COMMAND.fullmatch(text)):
            yield from self._end(within)
        if side is None:
            side = next(iter(self._open), None) or self._unmarked(text)
        elif side is Side.SENT:
            self._marked_sent = text
        if side is Side.SENT:
            yield from self._end(Side.RECEIVED)  # its end was lost
        if side is Side.LOG:
            if text:
                yield LogLine(side, text, head.at_s, head.number)
            return
        if side is Side.RECEIVED and self._shape.rest is Rest.BY_LOOK:
            text = text.removeprefix("> ")
        parts = self._open.setdefault(side, ([], head))[0]
        parts.append(text)
        is_data = side is Side.SENT and self._payloads.phase is Phase.DATA
        odd = text.count('"') % 2 == 1 and not is_data
        if odd == (len(parts) > 1) or is_data or len(parts) > _LONGEST_QUOTE:
            yield from self._end(side)

    def _unmarked(self, text: str) -> Side:
        """Return the side of a line without a mark."""
        answers = final_result(text) is not None or NAMED_ANSWER.match(text) is not None
        by_look = self._shape.rest in _TOLD_BY_LOOK
        if by_look and self._payloads.phase is Phase.DATA and not answers:
            return Side.SENT
        if text == self._marked_sent:
            return Side.RECEIVED
        return _by_rest(self._shape, None, text)[0]

    def _end(self, side: Side) -> Iterator[LogLine]:
        """Yield what is open on a side."""
        parts, head = self._open.pop(side, ([], None))
        text = "\n".join(parts)
        if not text or head is None:
            return
        if side is Side.SENT:
            self._payloads.sent(text.encode("utf-8", "surrogateescape"))
        else:
            self._payloads.received(text.encode("utf-8", "surrogateescape"))
        yield LogLine(side, text, head.at_s, head.number)


def _goes_on(begun: str, part: str) -> bool:
    begins = shapes.SPELT_END.match(part) is not None or begins_exchange(part)
    return not begins and len(begun) < _LONGEST_LINE


def _pieces(side: Side | None, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a line, each with whether it answers the one before it."""
    if side is Side.LOG:
        yield text, False
        return
    for part in _without_spelt_ends(text):
        if joined := shapes.IN_ONE_LINE.fullmatch(part):
            yield joined[1], False
            yield from ((answer.strip(), True) for answer in joined[2].split(";"))
            continue
        answers = False
        remarked = shapes.REMARK.fullmatch(part)
        rest = remarked[1] if remarked else part
        if result := shapes.GLUED.match(rest):
            yield result[0], answers
            rest = rest[result.end() :]
        for words in shapes.WORDS:
            if (match := words.fullmatch(rest)) and match[1].count('"') % 2 == 0:
                yield match[1], answers
                rest, answers = match[2], True
        yield rest, answers


def _without_spelt_ends(text: str) -> list[str]:
    """Return the parts of a line between the ends that a tool spelt out or lost, [""] if none."""
    parts, begin = [], 0
    quotes = counted = 0
    for match in shapes.SPELT_END.finditer(text):
        quotes += text.count('"', counted, match.start())
        counted = match.start()
        quoted = quotes % 2 == 1
        if match[0][0] not in "\\\r\n" or not quoted or match.end() == len(text):
            parts.append(text[begin : match.start()])
            begin = match.end()
    parts.append(text[begin:])
    exchanges = (one for part in parts for one in _exchanges(part))
    return [part.strip() for part in exchanges if part.strip()] or [""]


def _exchanges(text: str) -> list[str]:
    """Return the exchanges of a line whose line ends were lost, outside quotes."""
    parts = shapes.LOST_END.split(text)
    return [text] if any(part.count('"') % 2 for part in parts) else parts


def _steps(transcript: Transcript) -> Iterator[LogLine]:
    """Yield the lines of a transcript, its pieces joined."""
    ends = {Direction.SENT: transcript.terminator, Direction.RECEIVED: b"\n"}
    sides = {Direction.SENT: Side.SENT, Direction.RECEIVED: Side.RECEIVED}
    pending: dict[Direction, tuple[bytes, float | None]] = {}

    def whole(direction: Direction) -> Iterator[LogLine]:
        data, at_s = pending.pop(direction, (b"", None))
        if text := data.strip(b"\r\n\0").decode("utf-8", "surrogateescape"):
            yield LogLine(sides[direction], text, at_s)

    for step in transcript.steps:
        if step.direction is Direction.CLOSED:
            continue
        if step.direction is Direction.SENT:
            yield from whole(Direction.RECEIVED)  # a prompt that is answered
        before, at_s = pending.get(step.direction, (b"", step.at_s))
        pending[step.direction] = (before + step.data, at_s)
        if step.data.endswith(ends[step.direction]):
            yield from whole(step.direction)
    for direction in tuple(pending):
        yield from whole(direction)
