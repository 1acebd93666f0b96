"""Who said a line, by the marks of a shape, and how well a shape explains a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from at.transcripts.logs import shapes
from at.transcripts.logs.lines import Head, Side, is_answer
from at.transcripts.logs.literals import literals
from at.transcripts.logs.shapes import COMMAND, Rest, Shape

SAMPLE_LINES = 2000  # of these the shape is told: a long log is not read by every row
# Looked up for each line by each shape: a set of members hashes them in Python.
OF_THE_KIT = (Rest.BY_LOOK, Rest.RECEIVED)
TOLD_BY_LOOK = (Rest.BY_LOOK, Rest.LITERALS)


def score_of(shape: Shape, heads: Iterable[Head]) -> tuple[int, bool]:
    """Return how well a shape explains a log: commands are sent, answers are received.

    Of two that do so equally well it is the one with a mark of a command: the other takes its echo.
    """
    score, last_sent, has_marks = 0, "", False
    for by_mark, line in (one for head in heads for one in marked(shape, head)):
        has_marks |= by_mark is Side.SENT
        side = by_mark or unmarked(shape, line)
        if side is Side.LOG:  # most lines by most shapes
            continue
        text = shapes.first_line(line.strip())
        is_command = COMMAND.match(text) is not None
        answers = is_answer(text)
        if side is Side.SENT:  # a command that firmware logs, too, is one
            score += 2 * (is_command and text != last_sent) - answers
            last_sent = text
        else:
            score += answers - (is_command and text != last_sent)  # an echo is no fault
            last_sent = "" if answers else last_sent
    return score, has_marks


def sides_of(shape: Shape, heads: Iterable[Head]) -> Iterator[tuple[Side, str]]:
    """Yield the side of each line, marked or not, and the line without its mark."""
    for head in heads:
        for side, text in marked(shape, head):
            yield side or unmarked(shape, text), text.strip()


def marked(shape: Shape, head: Head) -> list[tuple[Side | None, str]]:
    """Return the side that a line's mark says, None if it has none, and the line without it.

    Literals of Python may be several. A mark in the kit's own log says nothing where the lines that
    have none are the port's.
    """
    if head.log and shape.rest in OF_THE_KIT:
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
            if side is Side.RECEIVED and shape.sent is None:
                return [(None, text)]
            if side is Side.SENT and (pair := shapes.ANSWERED.fullmatch(text)):
                answers = [answer for _, answer in literals(pair[2])] or [pair[2]]
                return [(side, pair[1]), *((Side.RECEIVED, answer.strip()) for answer in answers)]
            listed = literals(text) if text.startswith("[") else []
            return [(side, one.strip()) for _, one in listed] or [(side, text)]
    is_log = shape.rest is Rest.LITERALS or head.is_log
    return [(Side.LOG if is_log else None, head.log or line)]


def sides_with_ends(shape: Shape, heads: list[Head]) -> set[Side]:
    """Return the sides whose line ends are spelt out: what has none there is a part of a line."""
    return {
        side
        for head in heads[:SAMPLE_LINES]
        for side, text in marked(shape, head)
        if side in {Side.SENT, Side.RECEIVED} and shapes.ends_spelt(text)
    }


def unmarked(shape: Shape, text: str) -> Side:
    """Return the side of a line without a mark."""
    if shape.rest in TOLD_BY_LOOK:
        return Side.SENT if COMMAND.match(text.strip()) else Side.RECEIVED
    return Side.RECEIVED if shape.rest is Rest.RECEIVED else Side.LOG
