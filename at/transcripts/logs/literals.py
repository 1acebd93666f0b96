"""Reads the literals of Python that programs print of what went over a port. Pure."""

import ast
import re

from at.transcripts.logs.records import COLUMNS, direction_of
from at.transcripts.logs.shapes import LEFT, RIGHT
from at.transcripts.steps import Direction

# As repr() writes them: a text with other escapes was written by something else.
_INSIDE = r"[^{}\\]|\\(?:[abfnrtv'\"\\]|x[0-9a-fA-F]{{2}})"
_LITERAL = re.compile(rf"b?(?:'(?:{_INSIDE.format(chr(39))})*'|\"(?:{_INSIDE.format(chr(34))})*\")")
_BETWEEN = re.compile(
    rf"bytes?(?:array)?(?=\()|(?:\w+\.)*(?P<word>\w+)|(?P<mark>{RIGHT}|{LEFT}|>)|[\s,:=()\[\]{{}}]"
)


def literals(line: str) -> list[tuple[Direction | None, str]]:
    """Return the texts of a line that is nothing but literals of Python, [] if it is another.

    Before each may stand its direction, as a word, an arrow, a call (`port.write(`) or a literal.
    """
    texts: list[tuple[Direction | None, str]] = []
    direction: Direction | None = None
    at = 0
    while at < len(line):
        if literal := _LITERAL.match(line, at):
            text = _value(literal.group())
            said = None if text is None else direction_of(text)
            is_key = line[literal.end() :].lstrip().startswith(":")
            if text is None or (said is None and is_key and not _is_column(text, direction)):
                return []
            if said is None and not is_key:
                texts.append((direction, text))
            direction = said or direction
            at = literal.end()
            continue
        between = _BETWEEN.match(line, at)
        if between is None:  # else a comment ends the line
            return texts if line[at] == "#" else []
        word = between["word"] or between["mark"]
        # Else a time, what strace tells of a call, or a logger's name for the text.
        if word and not word.isdigit() and not _is_column(word, direction):
            said = direction_of(word)
            if said is None:
                return texts if direction else []
            answers = between["mark"] and texts and direction is None
            direction = Direction.RECEIVED if answers else said
        at = between.end()
    return texts


def _is_column(word: str, direction: Direction | None) -> bool:
    """Return whether a word names a direction, a time, or a text whose direction was said."""
    names = [name for name, column in COLUMNS.items() if column.fullmatch(word)]
    return bool(names) and (direction is not None or names != ["data"])


def _value(literal: str) -> str | None:
    """Return what a literal holds, None if Python would not read it."""
    try:
        value: str | bytes = ast.literal_eval(literal)
    except (SyntaxError, ValueError):  # such as bytes that are not ASCII
        return None
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
