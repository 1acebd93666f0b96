"""Makes records of the lines of a log: what was divided is joined, what was joined divided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from at.protocol.dialect import tells_start
from at.protocol.line.items import final_result
from at.transcripts.logs import shapes
from at.transcripts.logs.lines import LONGEST_LINE, Head, LogLine, Side, begins_exchange, is_answer
from at.transcripts.logs.shapes import Rest, Shape
from at.transcripts.logs.sides import TOLD_BY_LOOK, marked, unmarked
from at.transcripts.payloads import Payloads, Phase

# What no line of a key or of a text looks like: a quote that is open there was never closed.
_NEW_COMMAND = re.compile(r"AT[+%#*^][A-Z][A-Z0-9_]*(?:=.*|\?)?", re.IGNORECASE | re.DOTALL)
# Commands whose answer is a list of commands, and what stands in it.
_LISTS, _LISTED = re.compile(r"AT(?:\+|#X)CLAC", re.IGNORECASE), re.compile(r"AT[+%#&]?\w+")
_LONGEST_QUOTE = 500
"""Lines after which a quote that is open was a stray one."""


class Joiner:
    """Makes records of the lines of a file: spelt ends and words divide, open quotes join."""

    def __init__(self, shape: Shape, with_ends: set[Side]) -> None:
        self._shape = shape
        self._with_ends = with_ends
        self._payloads = Payloads()
        self._open: dict[Side, tuple[list[str], Head]] = {}
        """What stands in a quote that is open, by side, and the line on which it begins."""
        self._last_sent = ""
        """What was sent last, until something is received: the same without a mark is its echo."""
        self._lists = False
        """Whether a list of commands is on its way."""
        self._received: str | None = None
        """The last line, if it was: one without a mark that answers, too, goes on with it."""

    def lines(self, heads: Iterable[Head]) -> Iterator[LogLine]:
        """Yield the records, oldest first."""
        for mark, text, head in self._whole(heads):
            side = Side.RECEIVED if mark is None and self._goes_on_below(text) else mark
            self._received = text if side is Side.RECEIVED else None
            is_log = side is None and not self._open and unmarked(self._shape, text) is Side.LOG
            for piece, answers in _pieces(Side.LOG if is_log else side, text):
                later = Side.RECEIVED if answers else side
                yield from self._line(later, piece, head)
        for side in tuple(self._open):
            yield from self._end(side)

    def _goes_on_below(self, text: str) -> bool:
        """Return whether a line without a mark is of the answer whose first line has one."""
        if self._received is None:
            return False
        return shapes.ends_spelt(text) or (is_answer(text) and final_result(self._received) is None)

    def _whole(self, heads: Iterable[Head]) -> Iterator[tuple[Side | None, str, Head]]:
        """Yield what the lines hold; what a port gave in parts, and a logger wrote so, is whole."""
        begun: tuple[Side, str, Head] | None = None
        for head in heads:
            for side, part in marked(self._shape, head):
                first, text = head, part
                if begun and side in {Side.SENT, Side.RECEIVED}:
                    if side is begun[0] and _goes_on(begun[1], part):
                        text, first = begun[1] + (part or " "), begun[2]
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

    def _line(self, side: Side | None, text: str, head: Head) -> Iterator[LogLine]:
        if self._payloads.phase is not Phase.DATA:
            text = _with_plain_quotes(text)
        within = side or next(iter(self._open), None)
        is_sent_answered = within is Side.SENT and final_result(text) is not None
        if within and (is_sent_answered or _NEW_COMMAND.fullmatch(text)):
            yield from self._end(within)
        # AT itself is sent again and again till it is answered.
        has_echo = side or (self._shape.rest is Rest.BY_LOOK and text.upper() != "AT")
        if side is None:
            side = next(iter(self._open), None) or self._unmarked(text)
        if side is Side.SENT:
            self._last_sent = text if has_echo else ""
            self._lists = _LISTS.fullmatch(text) is not None
            yield from self._end(Side.RECEIVED)  # its end was lost
        elif side is Side.RECEIVED:
            self._last_sent = ""
            self._lists = self._lists and final_result(text) is None
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
        by_look = self._shape.rest in TOLD_BY_LOOK
        if by_look and self._payloads.phase is Phase.DATA and not is_answer(text):
            return Side.RECEIVED if tells_start(text) else Side.SENT
        if text == self._last_sent or (self._lists and _LISTED.fullmatch(text)):
            return Side.RECEIVED
        return unmarked(self._shape, text)

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


def _with_plain_quotes(text: str) -> str:
    r"""Return a text whose quotes are all escaped, as a shell and C want them, without its \."""
    return text if '"' in text.replace('\\"', "") else text.replace('\\"', '"')


def _goes_on(begun: str, part: str) -> bool:
    first = next(shapes.spelt_ends(part), None)
    begins = (first is not None and first.start() == 0) or begins_exchange(part)
    return not begins and len(begun) < LONGEST_LINE


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
        printed = shapes.PRINTED.match(rest) if side is None else None
        if result := shapes.GLUED.match(rest) or printed:
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
    for match in shapes.spelt_ends(text):
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
