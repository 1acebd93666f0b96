"""Takes the lines of a log out of a table, objects of JSON or lines of name=value. Pure."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeVar, cast

from at.protocol.counts import counted
from at.protocol.errors import TranscriptError
from at.transcripts.logs.leads import LEADS
from at.transcripts.logs.shapes import IN, LEFT, OUT, RIGHT
from at.transcripts.steps import Direction

COLUMNS = {
    "time": re.compile(
        r"[@_]*(?:(?:date ?|start_|realtime_)?time(?:stamp)?\b.*|date|ts)", re.IGNORECASE
    ),
    "direction": re.compile(
        r"dir(?:ection)?|[rt]x/[rt]x|side|sender|from|source|(?:analyzer )?name", re.IGNORECASE
    ),
    "data": re.compile(
        r"[@_]?(?:data|bytes|text|message|msg|payload|content|line|raw|value)"
        r"|decoded protocol result",
        re.IGNORECASE,
    ),
}
_OF_LOGGERS = frozenset({"level", "severity", "stream", "logger", "priority", "ingestiontime"})
"""What a record has that a logger or a store of logs wrote, and no kit."""
_MESSAGES = ("msg", "message", "log", "event", "textpayload")
_LOGFMT = re.compile(r'(?:(?P<name>\w+)=(?P<value>"(?:[^"\\]|\\.)*"|[^\s"]*)(?: +|$))')
_RULE = re.compile(r"[|:\s-]*")  # beneath the heading of a table in Markdown
_ARRAY = re.compile(r'\s*(?:\[\s*(?:\{.*)?|\{\s*|\{\s*"\w+":\s*\[.*)')
"""How a document of JSON begins that is an array of objects, or has one."""
_GAP = re.compile(r"[\s,]*")
_END = re.compile(r"[\s,]*(?:\]|\Z)")
_WIRESHARK = re.compile(
    r"(?:\s*\"?\d+\"?[\s,]+\"?(?P<time>\d+\.\d+))?.*?"
    r"\b(?:(?P<sent>Sent)|Rcvd|UnknownDirection) AT Command ?: *(?P<text>.*?)\s*\"?"
)
"""A packet as its list shows and exports it, with two blanks for each line end in it."""
_DECODER = json.JSONDecoder()
_MOST_DAMAGES = 100
"""Of an array; it is none if it has more. To tell of one, Python counts all lines before it."""
_BYTES = re.compile(r"(?:0x[0-9a-f]{2}[ ,]*)+|\\[rn]|.", re.IGNORECASE)
"""A cell of a logic analyser, which has a byte or a few: those of one direction go on."""
_WORDS = (
    (Direction.SENT, re.compile(rf"{OUT}|{RIGHT}|>", re.IGNORECASE)),
    (Direction.RECEIVED, re.compile(rf"{IN}|{LEFT}|<", re.IGNORECASE)),
)
_MARKS = {Direction.SENT: "TX: ", Direction.RECEIVED: "RX: ", None: ""}
_DATED = re.compile(r"\d{4}-\d\d-\d\d|\d{10}")
"""How a time begins that is a later one if its text is: not at midnight does it begin anew."""
_COMPARED = 100
"""Rows by which it is told whether an export begins with the newest."""
_T = TypeVar("_T")


def elements(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the objects of a document of JSON that is one array, a line each, oldest first.

    Any other lines are yielded as they are.

    The number is that of the line on which an object begins. What is damaged stays as it stands.
    """
    lines = iter(numbered)
    first = next(lines, (0, ""))
    if not _ARRAY.fullmatch(first[1]):
        yield from chain([first], lines)
        return
    kept = [first, *lines]
    text = "\n".join(line for _, line in kept)
    at = ends = text.find("[") + 1
    found: list[tuple[str, tuple[int, str]]] = []
    row = damages = 0
    while not _END.match(text, at):
        begin = _GAP.match(text, at).end()  # type: ignore[union-attr] # it also matches nothing
        row += text.count("\n", ends, begin)
        ends = begin
        try:
            if not text.startswith("{", begin):
                raise ValueError
            value, at = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            damages += 1
            if not found or damages > _MOST_DAMAGES or isinstance(error, RecursionError):
                yield from kept
                return
            at = text.find("{", begin + 1) % (len(text) + 1)
            found.append(("", (kept[row][0], text[begin:at].replace("\n", " "))))
            continue
        time = next((str(value[name]) for name in value if COLUMNS["time"].fullmatch(name)), "")
        found.append((time, (kept[row][0], json.dumps(value))))
    yield from _oldest_first(iter(found)) if found else kept


def _oldest_first(timed: Iterator[tuple[str, _T]]) -> Iterator[_T]:
    """Yield what has these times, from the last one where an export has the newest first."""
    first = list(islice(timed, _COMPARED))
    dated = [time for time, _ in first if _DATED.match(time)]
    is_turned = dated and dated[0] > dated[-1]
    return (each for _, each in (reversed([*first, *timed]) if is_turned else chain(first, timed)))


_Row = tuple[int, list[str]]
"""The cells of a row, and the number of the line on which it begins."""


@dataclass(frozen=True, slots=True)
class _Table:
    delimiter: str
    width: int
    columns: dict[str, int]

    def rows(self, numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield the rows as lines, oldest first. Raises TranscriptError.

        A column that is called as one of directions may name hosts, or an analyser.
        """
        cells = self._cells(numbered)
        first = list(islice(cells, _COMPARED))
        tells = any(direction_of(self._side(row)) for _, row in first)
        columns = {name: at for name, at in self.columns.items() if tells or name != "direction"}
        table = replace(self, columns=columns)
        at = columns.get("time")
        timed = (("" if at is None else row[at], (n, row)) for n, row in chain(first, cells))
        return ((number, table.line(row)) for number, row in _oldest_first(timed))

    def _cells(self, numbered: Iterator[tuple[int, str]]) -> Iterator[_Row]:
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
        before: _Row | None = None
        while True:
            begin = 0
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise _no_row(begin, str(error)) from error
            if row is None:
                break
            if len(row) != self.width:
                raise _no_row(
                    begin, f"{counted(len(row), 'columns')}, the heading has {self.width}"
                )
            if _RULE.fullmatch("".join(row)):
                continue
            cells = [cell.strip() for cell in row]
            data = _of_bytes(row[self.columns["data"]])
            if before and data and self._goes_on(before[1], cells):
                before[1][self.columns["data"]] += data
                continue
            if before:
                yield before
            cells[self.columns["data"]] = data or cells[self.columns["data"]]
            before = begin, cells
        if before:
            yield before

    def _goes_on(self, begun: list[str], cells: list[str]) -> bool:
        """Return whether bytes are of the line that bytes above them began."""
        ended = begun[self.columns["data"]].endswith("\\n")
        return not ended and self._side(cells) == self._side(begun)

    def _side(self, row: list[str]) -> str:
        return row[self.columns["direction"]] if "direction" in self.columns else ""

    def line(self, row: list[str]) -> str:
        side = self._side(row)
        direction = direction_of(side)
        if side and direction is None:
            return " ".join(row)
        time = _stamp(row[self.columns["time"]]) if "time" in self.columns else ""
        return f"{time}{_MARKS[direction]}{row[self.columns['data']]}"


def table_under(heading: str) -> _Table | None:
    """Return the table with this heading, if it names what was said, and its time or direction.

    What logs are kept in exports no direction, nor does a logic analyser on one line of a port.
    """
    for delimiter in ",;\t|":
        cells = [cell.strip(' "') for cell in heading.split(delimiter)]
        columns = _columns_of(cells)
        if "data" in columns and len(columns) > 1:
            return _Table(delimiter, len(cells), columns)
    return None


def _columns_of(names: Iterable[str]) -> dict[str, int]:
    """Return the place of each column that is known."""
    return {
        name: index
        for index, cell in enumerate(names)
        for name, pattern in COLUMNS.items()
        if pattern.fullmatch(cell)
    }


def without_record(line: str) -> str:
    """Return an object of JSON, or a line of name=value, as the line that it holds.

    It is a row of a table if it says a direction and has data, or a logger's if it names a level.
    A packet of Wireshark is what it holds, too.
    """
    if "AT Command" in line and (packet := _WIRESHARK.fullmatch(line)):
        text = packet["text"].replace('""', '"') if line.startswith('"') else packet["text"]
        is_sent = packet["sent"] or text.upper().startswith("AT")
        direction = Direction.SENT if is_sent else Direction.RECEIVED
        time = f"[{packet['time']}] " if packet["time"] else ""
        return time + _MARKS[direction] + text.replace("  ", r"\r\n")
    record = _record_in(line)
    row = [str(value).strip() for value in record.values()]
    sides = {at for at, cell in enumerate(row) if direction_of(cell)}
    if len(sides) == 1:  # whatever the member is called
        columns = _columns_of("" if at in sides else name for at, name in enumerate(record))
        if "data" in columns:
            return _Table("", len(row), columns | {"direction": sides.pop()}).line(row)
    columns = _columns_of(record)
    if {"direction", "data"} <= columns.keys() and _OF_LOGGERS.isdisjoint(map(str.lower, record)):
        return _Table("", len(row), columns).line(row)
    record = {name.lower(): value for name, value in record.items()}  # journald's are capital
    message = next((record[name] for name in _MESSAGES if name in record), None)
    if isinstance(message, list):  # so journald writes a text with colours
        message = _text_of(message)
    if not isinstance(message, str) or _OF_LOGGERS.isdisjoint(record):
        return line
    stamps = (_stamp(record[name]) for name in record if COLUMNS["time"].fullmatch(name))
    return next(filter(None, stamps), "") + message.rstrip("\r\n")


def _stamp(time: object) -> str:
    """Return a time as it stands before a line of a log, "" for what is none."""
    stamp = f"[{time}] "
    return stamp if any(lead.fullmatch(stamp) for lead in LEADS) else ""


def _text_of(numbers: list[object]) -> str | None:
    """Return the text whose bytes are in a list, None if that is no list of bytes."""
    are_bytes = all(isinstance(one, int) and 0 <= one < 256 for one in numbers)
    return bytes(cast("list[int]", numbers)).decode("utf-8", "replace") if are_bytes else None


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


def _of_bytes(cell: str) -> str:
    """Return the bytes of a logic analyser's cell, line ends spelt out; "" for another cell."""
    if not _BYTES.fullmatch(cell):
        return ""
    if not cell.lower().startswith("0x"):
        return cell
    data = bytes(int(byte, 16) for byte in re.findall("(?i)0x(..)", cell))
    return data.decode("latin-1").replace("\r", "\\r").replace("\n", "\\n")


def _no_row(number: int, reason: str) -> TranscriptError:
    return TranscriptError(
        f"line {number} is no row of the table: {reason}",
        hint="a text with a comma or a quote stands in quotes, and its own quotes are doubled",
    )


def direction_of(word: str) -> Direction | None:
    """Return the direction that a word or an arrow says, None if it says none."""
    spoken = word.replace("_", " ")  # as a function's name, such as send_at_cmd
    found = (side for side, words in _WORDS if words.fullmatch(word) or words.fullmatch(spoken))
    return next(found, None)
