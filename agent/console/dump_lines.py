"""Core dumps on a console: `#CD:` lines collected into dumps. Pure.

`#CD:BEGIN#`, lines of hex digits, `#CD:END#`; `#CD:ERROR CANNOT DUMP#` where the device failed.
Each may follow any prefix, and other lines may stand between them.
"""

import re
from dataclasses import dataclass, field, replace

from agent.console.log_line import strip_ansi
from agent.console.zephyr_coredump import HEADER_SIZE, MAGIC, Dump, DumpStatus, parse_dump
from at.protocol.kit_log import ANY_BEGIN

DUMP_MARK = b"#CD:"
_BEGIN = b"BEGIN#"
MAX_DUMP = 16 * 1024 * 1024
"""Bytes of one dump; a board's whole memory is less."""

_MAGIC_DIGITS = MAGIC.hex().upper().encode()
_HEX = re.compile(rb"[0-9A-Fa-f]*")
# What programs set behind the digits that they keep. A damaged digit has digits behind it, or
# leaves an odd number of them.
_BEHIND = re.compile(
    r"(?:\\[rn]|(?:\\u001b|\\x1b|)\[[0-9;]*m|<(?:cr|lf|br ?/?|/\w{1,8})>|\^M"
    r"|[\x00-\x08\x0e-\x1f\x7f])*"  # line ends and colours spelt out, tags
    rf"(?:(?<=\\n|r>|/>).*|{ANY_BEGIN}[\w.]+: {DUMP_MARK.decode()}"  # the line below
    r"|[\"'`] +\w+=.*|\([\w.-]+:\d+\))?"  # other fields, the place in a program
    r"[\"'`]?(?:\s*[\]}),;|](?!\s*[0-9a-f]+\s*$).*)?",  # the rest of a row
    re.DOTALL | re.IGNORECASE,
)
# A mark of which one character is lost, or is another, and digits behind it.
_DAMAGED_MARK = re.compile(rb"(?:#C.?:|#.?D:|.?CD:|#CD.?)[0-9A-Fa-f]{10,64}\b")
_MAX_ENDS = 4096
"""Ends of short lines that are remembered; the first one that is wrong decides."""


@dataclass(frozen=True, slots=True)
class CapturedDump:
    """A dump, and what was read of it. `data` belongs to the receiver."""

    data: bytearray
    dump: Dump
    starts: int = field(default=0, compare=False)
    """Crashes and starts of the kit that were read before it."""


@dataclass(frozen=True, slots=True)
class DamagedDumpLine:
    """A line of a dump that cannot be read, or that stands outside any dump."""

    text: bytes
    reason: str


class LineEnds:
    """The byte positions at which the lines of a dump ended, to find a missing line.

    All lines are equally wide, except the last one of a block or of its header: the kernel begins
    a new line with each block. The shell does not, and then only the last line is shorter.
    """

    def __init__(self) -> None:
        self._at = 0
        self._widest = 0
        self._ends: list[tuple[int, int]] = []  # of lines shorter than those before them

    def add(self, size: int) -> None:
        """Record a line of `size` bytes."""
        self._at += size
        self._widest = max(self._widest, size)
        if size < self._widest and len(self._ends) < _MAX_ENDS:
            self._ends.append((self._at, size))

    def missing_before(self, dump: Dump) -> int | None:
        """Return the byte before which a line is missing; None if none is."""
        borders = {HEADER_SIZE}
        for block in dump.blocks:
            borders |= {block.start, block.start + block.size}
        known = max(borders)
        return next(
            (
                at
                for at, size in self._ends
                if size < self._widest and at < known and at not in borders
            ),
            None,
        )


class DumpCollector:
    """Collects one dump at a time, line by line, in memory no larger than the dump."""

    def __init__(self) -> None:
        self._data: bytearray | None = None
        self._failed = False
        self._damage = ""
        self._sound = 0  # bytes before the first damage: those behind it may have moved
        self._dropped = 0
        self._lines = LineEnds()
        self._behind = ""  # BEGIN: a program spells colours and line ends out alike on each line
        self._first = b""  # the digits of a dump's first line, as long as it is the last one
        self._doubled = False  # each line comes twice: the shell and the UART both print the log
        self._twin: str | None = None  # where they do: the line that is due again

    @property
    def open(self) -> bool:
        """Whether a dump has begun and not ended."""
        return self._data is not None

    @property
    def size(self) -> int:
        """Bytes of the dump so far."""
        return len(self._data or b"")

    def feed(self, line: bytes) -> list[CapturedDump | DamagedDumpLine]:
        """Read a line that holds DUMP_MARK; return the dump that it ended, or its damage."""
        content = line[line.index(DUMP_MARK) + len(DUMP_MARK) :]
        if self._is_twin(content):
            return []
        is_begin = content.startswith(_BEGIN)
        # Its header shows a dump whose BEGIN came damaged, or was printed before anybody listened.
        if is_begin or (not self.open and content.upper().startswith(_MAGIC_DIGITS)):
            ended = self._finish("a new dump began") if self._data or self._failed else []
            self._data, self._failed, self._damage, self._dropped = bytearray(), False, "", 0
            self._lines, self._doubled, self._twin = LineEnds(), False, None
            self._behind = _rest(content, len(_BEGIN)) if is_begin else ""
            return ended if is_begin else self._add_digits(line, content, self._data)
        if content.startswith(b"LOCATION "):
            return []
        if self._data is None:
            return [DamagedDumpLine(line, "a line of a dump whose beginning was not heard")]
        if content.startswith(b"END#"):
            return self._finish("")
        if content.startswith(b"ERROR"):
            self._failed = True
            return []
        return self._add_digits(line, content, self._data)

    def check_other_line(self, line: bytes) -> list[DamagedDumpLine]:
        """Return the damage if a line without DUMP_MARK belongs to the open dump."""
        if self._data is None or not (match := _DAMAGED_MARK.search(line)):
            return []
        self._spoil(len(self._data), "the mark of a line is damaged")
        return [DamagedDumpLine(match[0], "its mark is damaged")]

    def restarted(self) -> list[CapturedDump | DamagedDumpLine]:
        """End the dump in progress: the kit has restarted."""
        return self._finish("the kit restarted") if self.open else []

    def count_dropped(self, messages: int) -> None:
        """Count log messages that the kit dropped, with or without lines of an open dump."""
        self._dropped += messages

    def finish(self) -> list[CapturedDump | DamagedDumpLine]:
        """End the dump in progress: the input has ended."""
        return self._finish("the input ended before the dump did") if self.open else []

    def _is_twin(self, content: bytes) -> bool:
        """Return whether a line is one that was read, printed once more.

        The first line shows it: no dump has its header again.
        """
        if not self._doubled:
            is_twin = bool(self._data and self._first) and content.lower().startswith(self._first)
            self._doubled = is_twin
        else:
            line = _rest(content, 0)
            is_twin = line == self._twin
            self._twin = None if is_twin else line
        return is_twin

    def _add_digits(
        self, line: bytes, content: bytes, data: bytearray
    ) -> list[CapturedDump | DamagedDumpLine]:
        digits = _HEX.match(content).group()  # type: ignore[union-attr] # it also matches nothing
        rest = _rest(content, len(digits))
        start, room = len(data), MAX_DUMP - len(data)
        is_header = not start and digits.upper().startswith(_MAGIC_DIGITS)
        self._first = digits.lower() if is_header else b""
        data += bytes.fromhex(digits[: len(digits) & ~1].decode())[:room]
        self._lines.add(len(digits) // 2)
        if rest not in {"", self._behind} and not _BEHIND.fullmatch(rest):
            reason = f"no hex digits: {rest[:20]!r}"
        elif len(digits) & 1:
            reason = f"an odd number of hex digits: {len(digits)}"
        elif not digits:
            reason = "no digits"
        elif len(digits) // 2 > room:
            reason = f"the dump exceeds {MAX_DUMP} bytes"
        else:
            return []
        self._spoil(start, reason)
        return [DamagedDumpLine(line, reason)]

    def _spoil(self, at: int, reason: str) -> None:
        if not self._damage:
            self._damage, self._sound = reason, at

    def _finish(self, cut_short: str) -> list[CapturedDump | DamagedDumpLine]:
        data = self._data if self._data is not None else bytearray()
        self._data = None
        dump = parse_dump(data)
        if self._failed:
            dump = replace(dump, status=DumpStatus.ERROR, detail="the device could not dump")
        elif dump.usable and dump.block("C") is not None:
            pass  # its CRC vouches for all of it, whatever line around it was lost
        elif self._damage:
            dump = replace(
                parse_dump(data[: self._sound]),
                size=len(data),
                status=DumpStatus.DAMAGED,
                detail=self._damage,
            )
        elif cut_short:
            dump = replace(dump, status=DumpStatus.INCOMPLETE, detail=cut_short)
        elif (
            dump.usable
            and (dump.unknown_tail or self._dropped)
            and (at := self._lines.missing_before(dump)) is not None
        ):
            # Blocks may seem to add up: what looks like one is then the middle of another one.
            detail = f"a line is missing before byte {at}"
            dump = replace(dump, status=DumpStatus.DAMAGED, detail=detail)
        return [CapturedDump(data, replace(dump, dropped_messages=self._dropped))]


def _rest(content: bytes, at: int) -> str:
    """Return what stands on a line from byte `at` on, without colours."""
    return strip_ansi(content[at:].decode("latin-1")).strip()
