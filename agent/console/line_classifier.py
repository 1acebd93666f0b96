"""Reads everything that a kit prints, however the bytes were cut. Knows no port and no clock.

    reader = ConsoleReader()
    for item in reader.receive(data): ...
    for item in reader.finish(): ...

Damage is an item, too: it is counted and shown, and never stops the reader.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import msgspec

from agent.console import chunk_lines
from agent.console.dump_lines import DUMP_MARK, CapturedDump, DamagedDumpLine, DumpCollector
from agent.console.fault_lines import CrashCounter, FaultText, Reboot, StartReader, read_fault
from agent.console.log_line import LogLine, dropped_messages, parse_line
from at.protocol.dialect import BOOT_BANNER

_BANNER = BOOT_BANNER.encode()
_DUMP_LINES = re.compile(b"(?=" + DUMP_MARK + b")")
# A line that a narrow terminal or a mail may have wrapped, a row within it, and the same with its
# last row. A mail (quoted-printable) marks what it breaks with =, and spells = as =3D.
_FIRST_ROW = re.compile(rb"(?:#CD:[0-9A-Fa-f]{1,63}|MC:[A-Za-z0-9+/]{12,}=?)\Z")
_ROW_WITHIN = re.compile(rb"[A-Za-z0-9+/]+=?")
_WRAPPED = re.compile(
    rb"(?:#CD:(?=.{2,65}\Z)[0-9A-Fa-f]+\n[0-9A-Fa-f]+|MC:[^:]+\n[A-Za-z0-9+/]*(?:=(?:3D)?)*:)\Z",
    re.DOTALL,
)

MAX_LINE = 65536
"""Bytes of one line, as of a chunk of 48 KiB. Of a longer line only the beginning is shown."""
_HEAD = 256  # bytes of an overlong line that are shown
_PART_OF_MARK = len(chunk_lines.CHUNK_MARK) - 1  # bytes of its end that may begin a mark


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: `size` is its length in bytes, `text` its beginning."""

    text: bytes
    size: int


ConsoleItem = (
    LogLine
    | FaultText
    | Reboot
    | chunk_lines.ChunkLine
    | chunk_lines.DamagedChunk
    | CapturedDump
    | DamagedDumpLine
    | Overlong
)


@dataclass(slots=True)
class ConsoleCounts:
    """Counts of what was read so far."""

    lines: int = 0
    chunks: int = 0
    damaged_chunks: int = 0
    dumps: int = 0
    damaged_dump_lines: int = 0
    faults: int = 0
    """Crashes and failed assertions, each with all its lines."""
    reboots: int = 0
    """Starts of the application; the bootloader's banner before it does not count."""
    dropped_by_kit: int = 0
    """Log messages that the kit reports as dropped."""
    overlong: int = 0


class LineClassifier:
    """Classifies whole lines; for a port whose bytes another reader has already divided."""

    def __init__(self, counts: ConsoleCounts | None = None) -> None:
        """Continue the `counts` of an earlier connection, if given."""
        self.counts = counts or ConsoleCounts()
        self._dumps = DumpCollector()
        self._crashes = CrashCounter()
        self._starts = StartReader()
        self._before = ("", "")  # the time and the text of the log line before

    @property
    def dump_bytes(self) -> int:
        """Bytes so far of the dump that is being printed; 0 when none is."""
        return self._dumps.size

    def classify(self, line: bytes) -> list[ConsoleItem]:
        """Return the items of a line without its line end, in order."""
        start = line.find(_BANNER)
        if start > 0 and (chunk_lines.CHUNK_MARK in line[:start] or DUMP_MARK in line[:start]):
            # A restart broke the line off, and its end with it.
            return [*self.classify(line[:start]), *self.classify(line[start:])]
        self.counts.lines += 1
        before, self._before = self._before, ("", "")
        if DUMP_MARK in line:
            return self._dump(line)
        log = parse_line(line)
        self._before = (log.time or "", log.text)
        # Once more: both the shell and the UART print the log.
        is_twin = log.time is not None and self._before == before
        if chunk_lines.MARK.search(line):
            return [] if is_twin else self._chunks(line)
        return [log] if is_twin else self._text(line, log)

    def finish(self) -> list[ConsoleItem]:
        """Return what is in progress, as the input has ended."""
        return self._count_dumps(self._dumps.finish())

    def _dump(self, line: bytes) -> list[ConsoleItem]:
        if chunk_lines.CHUNK_MARK not in line and line.count(DUMP_MARK) == 1:
            return self._count_dumps(self._dumps.feed(line))
        # Line ends were lost: each mark begins a line all the same. A chunk is proven by its CRC;
        # anything else behind the digits is damage of the dump.
        before, *lines = _DUMP_LINES.split(line)
        items = self._chunks(before) if chunk_lines.CHUNK_MARK in before else []
        for number, each in enumerate(lines, 1):
            digits, chunk_mark, rest = each.partition(chunk_lines.CHUNK_MARK)
            follows = chunk_mark or (DUMP_MARK if number < len(lines) else b"")
            items += self._count_dumps(self._dumps.feed(digits + follows))
            items += self._chunks(chunk_mark + rest) if chunk_mark else []
        return items

    def _count_dumps(self, items: Sequence[CapturedDump | DamagedDumpLine]) -> list[ConsoleItem]:
        dumps = sum(isinstance(item, CapturedDump) for item in items)
        self.counts.dumps += dumps
        self.counts.damaged_dump_lines += len(items) - dumps
        return self._with_starts(items)

    def _with_starts(self, items: Sequence[ConsoleItem]) -> list[ConsoleItem]:
        """Set `starts` of items that may be printed again: crashes and starts so far."""
        starts = self.counts.faults + self.counts.reboots
        return [
            replace(item, starts=starts)
            if isinstance(item, chunk_lines.ChunkLine | CapturedDump)
            else item
            for item in items
        ]

    def _chunks(self, line: bytes) -> list[ConsoleItem]:
        extracted, around = chunk_lines.extract_chunks(line)
        good = sum(isinstance(item, chunk_lines.ChunkLine) for item in extracted)
        self.counts.chunks += good
        self.counts.damaged_chunks += len(extracted) - good
        # The log prefix of a chunk is no item; a line that got mixed up with a chunk is.
        rest = parse_line(around)
        chunks = self._with_starts(extracted)
        return [*chunks, rest] if rest.text.strip() else chunks

    def _text(self, line: bytes, log: LogLine) -> list[ConsoleItem]:
        if dropped := dropped_messages(log.line):
            self.counts.dropped_by_kit += dropped
            self._dumps.count_dropped(dropped)
        fault = read_fault(log.text)
        if fault is None:
            self._starts.read(log.text)
            return [*self._damaged_marks(line), log]
        fault = self._crashes.mark_first(fault)
        if isinstance(fault, FaultText):
            self.counts.faults += fault.first
            return [log, fault]
        ended = self._count_dumps(self._dumps.restarted())
        reboot = self._starts.mark(fault)
        self.counts.reboots += reboot.is_start
        return [*ended, log, reboot]

    def _damaged_marks(self, line: bytes) -> list[ConsoleItem]:
        if chunk := chunk_lines.damaged_mark(line):
            self.counts.damaged_chunks += 1
            return [chunk]
        return self._count_dumps(self._dumps.check_other_line(line))


class ConsoleReader:
    """Divides bytes into lines, ended by CR, LF or both, and classifies them."""

    def __init__(self, max_line: int = MAX_LINE, counts: ConsoleCounts | None = None) -> None:
        """Continue the `counts` of an earlier connection, if given."""
        self.max_line = max_line
        self._classifier = LineClassifier(counts)
        self._pending = bytearray()
        self._skipped = 0
        self._skipped_chunk = False
        self._rows: list[bytes] = []  # of a line that the next one may continue

    @property
    def counts(self) -> ConsoleCounts:
        """Counts of what was read so far."""
        return self._classifier.counts

    @property
    def dump_bytes(self) -> int:
        """Bytes so far of the dump that is being printed; 0 when none is."""
        return self._classifier.dump_bytes

    def receive(self, data: bytes) -> list[ConsoleItem]:
        """Read bytes as they arrive; return the items that they completed."""
        *lines, tail = data.replace(b"\r", b"\n").split(b"\n")
        items: list[ConsoleItem] = []
        for line in lines:
            items += self._line(line)
        self._pending += tail
        if len(self._pending) > self.max_line:
            self._overflow()
        return items

    def finish(self) -> list[ConsoleItem]:
        """Return the last line and what is in progress, as the input has ended."""
        items = [*self._line(b""), *self._classified(b"")]
        return [*items, *self._classifier.finish()]

    def read(self, pieces: Iterable[bytes]) -> Iterator[ConsoleItem]:
        """Yield the items of a whole input, as its pieces complete them."""
        for data in pieces:
            yield from self.receive(data)
        yield from self.finish()

    def _line(self, line: bytes) -> list[ConsoleItem]:
        if self._pending:
            line = bytes(self._pending) + line
            self._pending.clear()
        if self._skipped or len(line) > self.max_line:
            return [*self._classified(b""), *self._overlong(line)]
        return self._classified(line) if line else []

    def _classified(self, line: bytes) -> list[ConsoleItem]:
        """Classify a line, or one with its rows before it; b"" ends what waits for another row."""
        rows, self._rows = self._rows, []
        row = line.strip()
        items: list[ConsoleItem] = []
        # A chunk ends with its colon, and a line of a dump has two rows.
        may_end = len(rows) == 1 or (rows and row.endswith(b":"))
        if may_end and _WRAPPED.search(b"".join(rows) + b"\n" + row):
            line = _unwrapped(rows, row)
        elif rows and self._goes_on(rows, row):
            rows.append(row)
            self._rows = rows
            return []
        else:
            items = [item for each in rows for item in self._classifier.classify(each)]
        if _FIRST_ROW.search(line):
            self._rows = [line]
        elif line:
            items += self._classifier.classify(line)
        return items

    def _goes_on(self, rows: list[bytes], row: bytes) -> bool:
        """Return whether a row is one within a chunk: as wide as the first, and not the last."""
        is_chunk = DUMP_MARK not in rows[0] and _ROW_WITHIN.fullmatch(row) is not None
        return is_chunk and len(row) == len(rows[0]) and len(rows) * len(row) < self.max_line

    def _overflow(self) -> None:
        self._skipped_chunk |= chunk_lines.CHUNK_MARK in self._pending
        self._skipped += len(self._pending) - _HEAD - _PART_OF_MARK
        del self._pending[_HEAD:-_PART_OF_MARK]

    def _overlong(self, line: bytes) -> list[ConsoleItem]:
        size = self._skipped + len(line)
        had_chunk = self._skipped_chunk or chunk_lines.CHUNK_MARK in line
        self._skipped, self._skipped_chunk = 0, False
        self.counts.overlong += 1
        self.counts.damaged_chunks += had_chunk
        return [Overlong(line[:_HEAD], size)]


def _unwrapped(rows: list[bytes], last: bytes) -> bytes:
    if last not in {b":", b"=:"}:  # else the = before it is the chunk's own
        rows = [row.removesuffix(b"=") for row in rows]
    return b"".join(rows) + last


_KINDS: dict[str, type[ConsoleItem]] = {kind.__name__: kind for kind in get_args(ConsoleItem)}
"""The kinds of item by their names in the stream to a console window."""


def encode_item(item: ConsoleItem) -> bytes:
    """Return `item` as one line of JSON, with its line end."""
    return msgspec.json.encode({"is": type(item).__name__, "item": item}) + b"\n"


def decode_item(value: Mapping[str, object]) -> ConsoleItem:
    """Return the item of a line that was read as JSON. Raises ValueError where it is none."""
    kind = _KINDS.get(str(value.get("is")))
    if kind is None:
        raise ValueError(f"no console item is called {value.get('is')!r}")
    try:
        return msgspec.convert(value.get("item"), kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
