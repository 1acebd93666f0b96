"""Reads a log of a modem's session, of any shape that `shapes` knows. Pure.

Bytes become lines, each with its direction, and its time where the log has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice
from shlex import quote
from typing import Any, TypeVar

from at.protocol.errors import TranscriptError
from at.transcripts.logs import shapes
from at.transcripts.logs.hex_dumps import without_dumps
from at.transcripts.logs.joiner import Joiner
from at.transcripts.logs.lines import LONGEST_LINE, Head, LogLine, Side, without_leads
from at.transcripts.logs.shapes import COMMAND, NAMED_ANSWER, Shape
from at.transcripts.logs.sides import OF_THE_KIT, SAMPLE_LINES, score_of, sides_of, sides_with_ends
from at.transcripts.logs.terminal import shown
from at.transcripts.logs.wrapping import divided, rejoined, straight, uncut, unwrapped, visible
from at.transcripts.steps import Direction
from at.transcripts.transcript import Transcript, parse_transcript

T = TypeVar("T")
Told = Callable[[str, Sequence[Any]], Iterable[Any]]
"""Yields the items of a long piece of work, and tells a person how far it is."""
_NO_CHARACTER = re.compile("[\x01-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")
_LINE_END = re.compile(r"\r\n|\n|\r")
_TRANSCRIPT = re.compile(r"\s*# transcript: ")
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
_AT_WITHIN = re.compile(r"AT|[+%#*^!][A-Z]|OK|ERROR", re.IGNORECASE)
# The last line of a dump in hex: an offset, perhaps with a byte or two.
_END_OF_DUMP = re.compile(r"[0-9a-f]{6,16}(?:[: ] *(?:[0-9a-f]{2}){1,2}\b.*)?", re.IGNORECASE)
_PEEKED = 4096
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def untold(_what: str, items: Sequence[T]) -> Iterable[T]:
    """Yield the items, and tell nobody."""
    return items


@dataclass(frozen=True, slots=True)
class ReadLog:
    """The lines of a log. `shape` is the name of its shape; `header` that of a transcript.

    `of_the_kit`: its log lines came over the port, like all that is not marked as sent.
    """

    lines: tuple[LogLine, ...]
    shape: str
    of_the_kit: bool
    header: Mapping[str, str] = field(default_factory=dict)


def read_lines(file: BufferedReader) -> Iterator[LogLine]:
    """Yield the lines of any text, a modem's log or not, as they are read; long ones in pieces.

    Raises TranscriptError if it is no text, a dump in hex and nothing else, or begins with the
    sessions of several kits.
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
    heads = _heads(iter(lambda: text.readline(LONGEST_LINE), ""))
    first = list(islice(heads, 10 * SAMPLE_LINES))
    others = [head for head in first if not shapes.HEX_DUMP.line.match(head.text)]
    if len(others) < len(first) and all(_END_OF_DUMP.fullmatch(head.text) for head in others):
        raise TranscriptError(
            f"this looks like {shapes.HEX_DUMP.name}: a log is needed", hint=_WHICH_LOG
        )
    shape = _shape_of(first)
    _refuse_several(shape, first)
    yield from Joiner(shape, sides_with_ends(shape, first)).lines(chain(first, heads))


def _is_utf_16(data: bytes, bom: bytes) -> bool:
    """Return whether a text has the other byte of its commands, too: noise may look like a mark."""
    return data.startswith(bom) and 8 * data.count(b"\0") >= len(data) - len(bom)


def _is_binary(begin: bytes) -> bool:
    """Return whether more than a tenth is no character of a log; a NUL among others says nothing.

    A serial line breaks into NULs as its other end restarts, and UTF-16 has one in each character.
    """
    text = begin.replace(b"\0", b"").decode("utf-8", "replace")
    return not text or 10 * len(_NO_CHARACTER.findall(text)) > len(text)


def _heads(lines: Iterable[str]) -> Iterator[Head]:
    """Yield the lines that say something. Raises TranscriptError if there is none."""
    head = None
    screen = ((number, shown(line)) for number, line in unwrapped(map(visible, lines)))
    for number, line in without_dumps(rejoined(uncut(divided(screen)))):
        head = without_leads(line, number)
        yield head
    if head is None:
        raise TranscriptError("the log is empty: no line that was sent or received")


def _shape_of(heads: Iterable[Head]) -> Shape:
    sample = list(islice((head for head in heads if _AT_WITHIN.search(head.text)), SAMPLE_LINES))
    return max(shapes.SHAPES, key=lambda shape: score_of(shape, sample))


def read_log(data: bytes, told: Told = untold) -> ReadLog:
    """Return what a log says. Raises TranscriptError, which names the kind that it looks like."""
    text = _decoded(data)
    if _TRANSCRIPT.match(text):
        transcript = parse_transcript(text.lstrip())
        return ReadLog(tuple(_steps(transcript)), "transcript", True, transcript.header)
    heads = list(_heads(map(straight, told("reading", _LINE_END.split(text)))))
    shape = _shape_of(heads)
    _refuse_foreign(shape, heads)
    _refuse_several(shape, heads)
    lines = Joiner(shape, sides_with_ends(shape, heads)).lines(heads)
    return ReadLog(tuple(lines), shape.name, shape.rest in OF_THE_KIT)


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


def _refuse_foreign(shape: Shape, heads: list[Head]) -> None:
    """Raise TranscriptError for a log of another kind, or of no kind that is known."""
    if any(
        side is not Side.LOG
        and not any(mark.match(text) for mark, _ in _READ_ELSEWHERE)
        and (COMMAND.match(text) or NAMED_ANSWER.match(text))
        for side, text in sides_of(shape, heads)
    ):
        return
    others = [head for head in heads if not head.is_log]
    kinds = [
        (sum(bool(kind.line.match(one.raw) or kind.line.match(one.text)) for one in others), kind)
        for kind in shapes.FOREIGN
    ]
    count, kind = max(kinds, key=lambda kind: kind[0])
    elsewhere = (
        way for mark, way in _READ_ELSEWHERE if any(mark.search(head.raw) for head in heads)
    )
    hint = next(elsewhere, _READ)
    if count and count >= len(heads) - len(others):  # else it is the kit's log, with some of that
        raise TranscriptError(
            f"this looks like {kind.name}: no log of a modem's AT commands that can be read",
            hint=hint,
        )
    if len(others) < len(heads):
        return
    if within := next((head for head in heads if _COMMAND_WITHIN.search(head.text)), None):
        raise TranscriptError(
            f"line {within.number} holds an AT command, but in no form that is known", hint=_READ
        )
    raise TranscriptError(
        "the log holds no line that was sent or received: no AT command, no answer", hint=hint
    )


def _refuse_several(shape: Shape, heads: list[Head]) -> None:
    """Raise TranscriptError for a log with the sessions of several kits: their lines would mix."""
    kits = [
        kit
        for kit in dict.fromkeys(head.kit for head in heads if head.kit)
        if score_of(shape, [head for head in heads if head.kit == kit][:SAMPLE_LINES])[0] > 2
    ]
    if len(kits) > 1:
        # To grep a name is a word of another one that goes on behind a hyphen: app and app-2.
        longer = (kit for kit in kits[1:] if re.search(rf"\b{re.escape(kits[0])}\b", kit))
        others = "".join(f" | grep -vwF {quote(kit)}" for kit in longer)
        raise TranscriptError(
            f"the log holds the sessions of several kits: {', '.join(kits)}",
            hint=f"give the lines of one, such as `grep -wF {quote(kits[0])} LOG{others} > ONE`",
        )


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
