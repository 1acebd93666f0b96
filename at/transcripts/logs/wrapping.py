"""Takes a log's text out of what it is wrapped in: HTML, a table, the literals of Python. Pure.

What a logger took out of it is put back.
"""

import ast
import csv
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from at.protocol import kit_log
from at.protocol.counts import counted
from at.protocol.errors import TranscriptError
from at.transcripts.logs.shapes import FENCE, IN, LEADS, LEFT, OUT, RIGHT
from at.transcripts.steps import Direction

_ESCAPED = {"&lt;": "<", "&gt;": ">", "&quot;": '"'}
_COLUMNS = {
    "time": re.compile(r"(?:date ?)?time(?:stamp)?\b.*|ts", re.IGNORECASE),
    "direction": re.compile(r"dir(?:ection)?|[rt]x/[rt]x|side|sender|from|source", re.IGNORECASE),
    "data": re.compile(r"data|bytes|text|message|payload|content|line", re.IGNORECASE),
}
_TAGS = re.compile(
    r"^(?:\[code[^\]]*\]|<(?:pre|code)\b[^>]*>)|(?:\[/code\]|</(?:pre|code)>)$", re.IGNORECASE
)
"""What a forum sets around a log, on its first line and its last."""
_LEVELS = frozenset({"level", "severity", "stream", "logger", "priority"})
_MESSAGES = ("msg", "message", "log", "event")
_LOGFMT = re.compile(r'(?:(?P<name>\w+)=(?P<value>"(?:[^"\\]|\\.)*"|[^\s"]*)(?: +|$))')
_RETURNS = re.compile(r"(?<!\^M)(?>(?:\^M)+)$")
"""The CR before a line's end, as cat -v and chat show it."""
_RULE = re.compile(r"[|:\s-]*")  # beneath the heading of a table in Markdown
# As repr() writes them: a text with other escapes was written by something else.
_INSIDE = r"[^{}\\]|\\(?:[abfnrtv'\"\\]|x[0-9a-fA-F]{{2}})"
_LITERAL = re.compile(rf"b?(?:'(?:{_INSIDE.format(chr(39))})*'|\"(?:{_INSIDE.format(chr(34))})*\")")
_BETWEEN = re.compile(rf"(?:\w+\.)*(?P<word>\w+)|(?P<mark>{RIGHT}|{LEFT}|>)|[\s,:=()\[\]{{}}]")
_SPACED = re.compile(r"(_received_command: [+%#][A-Za-z]\w*: ) ([\d\"].*)")
"""What Zephyr's modem_chat logs of an answer: its name, and its fields with blanks between."""
_SOCAT = re.compile(
    r"([<>]) (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{1,9}) +length=\d+ from=\d+ to=\d+$"
)
"""What socat -v and -x print before each transfer: behind the last one if that had no line end."""
_SCREEN = 80
"""Columns of a terminal, which breaks a longer line where it was not asked to."""
_BEGUN = re.compile(r"[+%#][A-Z]\w*:|AT[+%#][^\"]*(?:\"[^\"]*\"[^\"]*)*\"[^\"]*$")
"""An answer with a name, or a command whose quote is open."""
_BEGINS = re.compile(r"\[|AT[+%#]|[+%#][A-Z]\w*:|(?:OK|ERROR)$", re.IGNORECASE)
_LEFT_OPEN = re.compile(r"(?:.*\s)?(?:-->|<--) '[^']{0,4096}")
_QUOTED_BEGINS = re.compile(r"(?:-->|<--) '|^[> ]*<\w{3,7}> ")
"""ModemManager's quote, which a mail breaks at a blank; and how its lines begin."""
_GOES_ON = re.compile(r"[\d\",.-][^:]*|[0-9A-Fa-f]+\".*")
_CUT = re.compile(
    r"(?P<begun>(?P<command>AT)?[+%#][A-Z].{0,500}?)"
    rf"(?P<log>{kit_log.BEGIN}.*)"
)
"""A command or an answer, and the log line of the kit that came into it."""
_LOG_BEGINS = re.compile(kit_log.BEGIN)
_EMPHASIS = re.compile(r"\s*(?P<mark>\*\*|`)(?P<text>[^*`\s][^*`]*)(?P=mark)\s*")
"""A line in Markdown, in bold or as code."""
STRAIGHT = str.maketrans("\u201c\u201d\u201e\u2033\xa0", '""""' + " ")
"""Forums make quotes curly, and blanks such that break no line."""
_BLANK = re.compile(r"(\"[^\"]*\"?)| ")
_WORDS = (
    (Direction.SENT, re.compile(rf"{OUT}|{RIGHT}|>", re.IGNORECASE)),
    (Direction.RECEIVED, re.compile(rf"{IN}|{LEFT}|<", re.IGNORECASE)),
)


def unwrapped(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers in the file, from 1.

    A row of a table becomes `[time] TX: data`. Raises TranscriptError for one that its heading
    does not fit.
    """
    numbered = _marked_by_socat(
        (
            number,
            _without_record(
                _with_commas(
                    _without_html(_without_emphasis(_RETURNS.sub("", line.strip("\ufeff\r\n"))))
                )
            ),
        )
        for number, line in enumerate(lines, start=1)
        if line.strip("\ufeff \t\r\n") and not FENCE.fullmatch(line)
    )
    first = next(numbered, None)
    if first is None:
        return
    table = _table_under(first[1])
    if table is None:
        yield first
        yield from numbered
    else:
        yield from table.rows(numbered)


def _marked_by_socat(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a log of socat -v or -x, each with time and direction; others as they are.

    With both it writes `--` behind each transfer.
    """
    mark = begun = ""
    number = 0
    for number, line in numbered:
        header = _SOCAT.search(line) if "length=" in line else None
        text = begun + (line[: header.start()] if header else line)
        # What is typed goes over the port in pieces.
        goes_on = header and mark.endswith(f"{header[1]} ") and not text.endswith(("\\r", "\\n"))
        begun = text if goes_on else ""
        if text and not goes_on and not (mark and text == "--"):
            yield number, mark + text
        if header:
            mark = f"{header[2]} {header[1]} "
    if begun:
        yield number, mark + begun


def divided(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; of log lines that a forum put on one, each by itself."""
    for number, line in numbered:
        begins = [found.start() for found in _LOG_BEGINS.finditer(line)] if "<" in line else []
        for begin, end in pairwise([0, *begins[1:], len(line)]):
            yield number, line[begin:end]


def uncut(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; an answer that a log line cut is whole, behind that one.

    Its rest stands on the next line, as the driver's framing has it.
    """
    begun: tuple[int, str] | None = None
    for number, line in numbered:
        whole = number, line
        if begun:
            if _BEGINS.match(line):
                yield begun
            else:
                whole = begun[0], begun[1] + line
            begun = None
        cut = _CUT.fullmatch(whole[1])
        if cut is None:
            yield whole
            continue
        if cut["command"]:
            yield whole[0], cut["begun"]
        else:
            begun = whole[0], cut["begun"]
        yield whole[0], cut["log"]
    if begun:
        yield begun


def rejoined(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; what a terminal or a mail broke is whole."""
    begun: tuple[int, str] | None = None
    for number, line in numbered:
        if begun and _LEFT_OPEN.fullmatch(begun[1]) and not _QUOTED_BEGINS.search(line):
            begun = begun[0], f"{begun[1]} {line.lstrip('> ')}"
            if not _LEFT_OPEN.fullmatch(begun[1]):
                yield begun
                begun = None
            continue
        if begun and (_GOES_ON.fullmatch(line) or _goes_on_within_quotes(begun[1], line)):
            begun = begun[0], begun[1] + line
            if len(line) == _SCREEN:
                continue
            yield begun
            begun = None
            continue
        if begun:
            yield begun
            begun = None
        if (len(line) == _SCREEN and _BEGUN.match(line)) or _LEFT_OPEN.fullmatch(line):
            begun = number, line
        else:
            yield number, line
    if begun:
        yield begun


def _goes_on_within_quotes(begun: str, line: str) -> bool:
    return begun.count('"') % 2 == 1 and not _BEGINS.match(line)


def _without_emphasis(line: str) -> str:
    """Return a line without what a forum sets around a log, or Markdown around a line of it."""
    emphasis = _EMPHASIS.fullmatch(line)
    return emphasis["text"] if emphasis else _TAGS.sub("", line)


def _without_html(line: str) -> str:
    """Return a line without HTML's escapes, if it is escaped: what may be, is so throughout."""
    found = [sign for entity, sign in _ESCAPED.items() if entity in line]
    return html.unescape(line) if found and not any(sign in line for sign in found) else line


def straight(line: str) -> str:
    """Return a line with straight quotes; in a credential, curly ones are its own defect."""
    return line if "CMNG" in line or "-----" in line else line.translate(STRAIGHT)


def _with_commas(line: str) -> str:
    """Return a line with the commas that Zephyr's modem_chat took out of an answer's fields."""
    return _SPACED.sub(
        lambda found: found[1] + _BLANK.sub(lambda one: one[1] or ",", found[2].rstrip()), line
    )


@dataclass(frozen=True, slots=True)
class _Table:
    delimiter: str
    width: int
    columns: dict[str, int]

    def rows(self, numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield the rows as lines. Raises TranscriptError."""
        begin = 0

        def lines() -> Iterator[str]:
            nonlocal begin
            for number, line in numbered:
                begin = begin or number
                yield line + "\n"

        own_quotes = self.delimiter == "|"  # Markdown's are the text's own
        rows = csv.reader(
            lines(),
            delimiter=self.delimiter,
            quoting=csv.QUOTE_NONE if own_quotes else csv.QUOTE_MINIMAL,
            strict=True,
        )
        while True:
            begin = 0
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise _no_row(begin, str(error)) from error
            if row is None:
                return
            if len(row) != self.width:
                raise _no_row(
                    begin, f"{counted(len(row), 'columns')}, the heading has {self.width}"
                )
            if not _RULE.fullmatch("".join(row)):
                yield begin, self.line([cell.strip() for cell in row])

    def line(self, row: list[str]) -> str:
        direction = direction_of(row[self.columns["direction"]])
        if direction is None:
            return " ".join(row)
        mark = "TX" if direction is Direction.SENT else "RX"
        time = f"[{row[self.columns['time']]}] " if "time" in self.columns else ""
        is_time = any(lead.fullmatch(time) for lead in LEADS)
        return f"{time if is_time else ''}{mark}: {row[self.columns['data']]}"


def _table_under(heading: str) -> _Table | None:
    """Return the table with this heading, if it names directions and what was sent or received."""
    for delimiter in ",;\t|":
        cells = [cell.strip(' "') for cell in heading.split(delimiter)]
        if columns := _columns_of(cells):
            return _Table(delimiter, len(cells), columns)
    return None


def _columns_of(names: Iterable[str]) -> dict[str, int]:
    """Return the place of each column that is known; none if direction or data is not there."""
    columns = {
        name: index
        for index, cell in enumerate(names)
        for name, pattern in _COLUMNS.items()
        if pattern.fullmatch(cell)
    }
    return columns if {"direction", "data"} <= columns.keys() else {}


def _without_record(line: str) -> str:
    """Return an object of JSON, or a line of name=value, as the line that it holds.

    It is a row of a table if it names direction and data, or a logger's if it names a level.
    """
    record = _record_in(line)
    if columns := _columns_of(record):
        row = [str(value).strip() for value in record.values()]
        return _Table("", len(row), columns).line(row)
    message = next((record[name] for name in _MESSAGES if name in record), None)
    if not isinstance(message, str) or _LEVELS.isdisjoint(record):
        return line
    told = (f"[{record[name]}] " for name in record if _COLUMNS["time"].fullmatch(name))
    time = next((time for time in told if any(lead.fullmatch(time) for lead in LEADS)), "")
    return time + message.rstrip("\r\n")


def _record_in(line: str) -> dict[str, object]:
    """Return the members of a line that is nothing but a record, {} for any other."""
    if line.startswith('{"'):
        try:
            record: dict[str, object] = json.loads(line)
        except (ValueError, RecursionError):
            return {}
        return record
    pairs: dict[str, object] = {}
    at = 0
    while "=" in line and (pair := _LOGFMT.match(line, at)):
        value = pair["value"]
        pairs[pair["name"]] = value[1:-1].replace('\\"', '"') if value[:1] == '"' else value
        at = pair.end()
    return pairs if at == len(line) else {}


def _no_row(number: int, reason: str) -> TranscriptError:
    return TranscriptError(
        f"line {number} is no row of the table: {reason}",
        hint="a text with a comma or a quote stands in quotes, and its own quotes are doubled",
    )


def direction_of(word: str) -> Direction | None:
    """Return the direction that a word or an arrow says, None if it says none."""
    found = (direction for direction, words in _WORDS if words.fullmatch(word))
    return next(found, None)


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
        if between is None:
            return []
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
    names = [name for name, column in _COLUMNS.items() if column.fullmatch(word)]
    return bool(names) and (direction is not None or names != ["data"])


def _value(literal: str) -> str | None:
    """Return what a literal holds, None if Python would not read it."""
    try:
        value: str | bytes = ast.literal_eval(literal)
    except (SyntaxError, ValueError):  # such as bytes that are not ASCII
        return None
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
