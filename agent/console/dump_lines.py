"""Core dumps in a console: `#CD:` lines gathered into dumps. Pure.

`#CD:BEGIN#`, lines of hex digits, `#CD:END#`; `#CD:ERROR CANNOT DUMP#` where the device failed.
Each may stand behind any prefix, and what is no such line may stand between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from agent.console.log_line import strip_ansi
from agent.console.zephyr_coredump import Dump, Status, parse_dump

MARK = b"#CD:"
MAX_DUMP = 16 * 1024 * 1024
"""Bytes of one dump; a board's whole memory is less."""

_HEX = re.compile(rb"[0-9A-Fa-f]*")


@dataclass(frozen=True, slots=True)
class CapturedDump:
    """A dump from its beginning to its end, and what it is. `data` belongs to the receiver."""

    data: bytearray
    dump: Dump


@dataclass(frozen=True, slots=True)
class DamagedDumpLine:
    """A line of a dump that cannot be read, or that stands outside any dump."""

    text: bytes
    reason: str


class DumpCollector:
    """Gathers one dump at a time, line by line, in memory no larger than the dump."""

    def __init__(self, limit: int = MAX_DUMP) -> None:
        self.limit = limit
        self._data: bytearray | None = None
        self._failed = False
        self._damage = ""
        self._dropped = 0

    @property
    def open(self) -> bool:
        """Tell whether a dump has begun and not ended."""
        return self._data is not None

    @property
    def size(self) -> int:
        """Bytes of the dump so far."""
        return len(self._data or b"")

    def take(self, line: bytes) -> list[CapturedDump | DamagedDumpLine]:
        """Take a line that holds MARK; return the dump that it ended, or what is wrong with it."""
        content = line[line.index(MARK) + len(MARK) :]
        if content.startswith(b"BEGIN#"):
            ended = self._finish("a new dump began") if self.open else []
            self._data, self._failed, self._damage, self._dropped = bytearray(), False, "", 0
            return ended
        if content.startswith(b"LOCATION "):
            return []
        if self._data is None:
            return [DamagedDumpLine(line, "a line of a dump whose beginning was not heard")]
        if content.startswith(b"END#"):
            return self._finish("")
        if content.startswith(b"ERROR"):
            self._failed = True
            return []
        return self._digits(line, content, self._data)

    def note_dropped(self, messages: int) -> None:
        """Learn that the kit dropped log messages: an open dump may lack lines."""
        self._dropped += messages

    def finish(self) -> list[CapturedDump | DamagedDumpLine]:
        """End the dump in progress, as the input has ended."""
        return self._finish("the input ended before the dump did") if self.open else []

    def _digits(
        self, line: bytes, content: bytes, data: bytearray
    ) -> list[CapturedDump | DamagedDumpLine]:
        digits = _HEX.match(content).group()  # type: ignore[union-attr] # it matches nothing, too
        rest = strip_ansi(content[len(digits) :].decode("latin-1")).strip()
        room = self.limit - len(data)
        data += bytes.fromhex(digits[: len(digits) & ~1].decode())[:room]
        if rest:
            reason = f"no hex digits: {rest[:20]!r}"
        elif len(digits) & 1:
            reason = f"an odd number of hex digits: {len(digits)}"
        elif not digits:
            reason = "no digits"
        elif len(digits) // 2 > room:
            reason = f"the dump exceeds {self.limit} bytes"
        else:
            return []
        self._damage = self._damage or reason
        return [DamagedDumpLine(line, reason)]

    def _finish(self, cut_short: str) -> list[CapturedDump | DamagedDumpLine]:
        data = self._data if self._data is not None else bytearray()
        self._data = None
        dump = parse_dump(data)
        if self._failed:
            dump = replace(dump, status=Status.ERROR, detail="the device could not dump")
        elif self._damage:
            dump = replace(dump, status=Status.DAMAGED, detail=self._damage)
        elif cut_short:
            dump = replace(dump, status=Status.INCOMPLETE, detail=cut_short)
        elif self._dropped and dump.usable:
            detail = f"the kit dropped {self._dropped} log messages within the dump"
            dump = replace(dump, status=Status.INCOMPLETE, detail=detail)
        return [CapturedDump(data, dump)]
