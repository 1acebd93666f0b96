"""The output of `cellagent console`, for a person or a program, at the pace that it is read."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent.cli.framework.command import json_line
from agent.cli.framework.safe_text import AS_IN_JSON, drawn, printable
from agent.cli.framework.terminal import colours
from agent.redact import redact
from at.protocol.counts import counted

if TYPE_CHECKING:
    from agent.console.line_classifier import ConsoleItem
    from agent.observability.coredumps.symbols import ElfSymbols

OUTPUT_LIMIT = 32 * 1024 * 1024
"""Bytes that wait to be shown; what comes beyond them is counted, and not shown."""
_AT_ONCE = 16384  # bytes of short lines that are written together
OUTPUT_END_S = 5.0
"""Seconds that the end of the command waits for a terminal that takes nothing."""


class PacedOutput:
    """Writes texts to standard output and standard error, in order, in a thread of its own."""

    def __init__(self, not_shown: Callable[[int], str], limit: int = OUTPUT_LIMIT) -> None:
        """`not_shown` makes the text that stands for a number of lines that were left out."""
        self._not_shown = not_shown
        self._limit = limit
        self._texts: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._left_out = 0
        self._ended = False
        self._failure: OSError | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    def put(self, text: str, *, error: bool = False) -> None:
        """Write `text` when its turn comes, to standard error with `error`.

        Raises BrokenPipeError, OSError once nobody can read any more.
        """
        shown = drawn(text) if os.isatty(2 if error else 1) else text
        data = shown.encode("utf-8", AS_IN_JSON)
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._bytes + len(data) > self._limit:
                self._left_out += text.count("\n")
                return
            self._append(2 if error else 1, data)

    def close(self) -> None:
        """Write what waits, but do not wait for a terminal that takes nothing. Raises OSError."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(OUTPUT_END_S if sys.stdout.isatty() else None)
        if self._failure is not None:
            raise self._failure

    def _append(self, descriptor: int, data: bytes) -> None:
        self._texts.append((descriptor, data))
        self._bytes += len(data)
        self._changed.notify()

    def _write_all(self) -> None:
        try:
            while (piece := self._next()) is not None:
                _write(*piece)
        except OSError as error:
            with self._changed:
                self._failure = error

    def _next(self) -> tuple[int, bytes] | None:
        with self._changed:
            if self._left_out and self._bytes < self._limit // 2:
                text, self._left_out = self._not_shown(self._left_out), 0
                self._append(1, text.encode() + b"\n")
            while not self._texts:
                if self._ended:
                    return None
                self._changed.wait()
            descriptor, data = self._texts.popleft()
            while self._texts and self._texts[0][0] == descriptor and len(data) < _AT_ONCE:
                data += self._texts.popleft()[1]
            self._bytes -= len(data)
            return descriptor, data


def _write(descriptor: int, data: bytes) -> None:
    # Not sys.stdout: a thread that is stuck would hold its lock at the end of the process.
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # another process made the terminal non-blocking
            select.select([], [descriptor], [])


_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[33m", "debug": "\x1b[2m"}
_RESET = "\x1b[0m"
RANK = {"debug": 0, "info": 1, "warning": 2, "error": 3}


class ConsoleWindow:
    """Shows items to a person, or to a program; it never waits for a slow terminal."""

    def __init__(
        self, as_json: bool, level: str | None, match: str, symbols: ElfSymbols | None = None
    ) -> None:
        self._floor = RANK[level] if level else -1
        self._match = match
        self._symbols = symbols
        self._json = as_json
        self._chunks = 0
        self._colours = colours(sys.stdout)
        self._output = PacedOutput(self._not_shown)
        self._damage = ""
        self._more_damage = 0
        self._dump_announced = False

    def show(self, item: ConsoleItem) -> None:
        """Show one item of the console."""
        from agent.console.log_line import LogLine

        if isinstance(item, LogLine):
            if item.level is not None and RANK[item.level] < self._floor:
                return
            if self._match and self._match not in item.line:
                return
        if self._json:
            self._emit(_describe(item, self._symbols))
        elif not self._is_more_damage(item):
            self._show_lines(self._lines_of(item))

    def note(self, text: str) -> None:
        """Show progress or a warning on standard error, without the secrets it may hold."""
        self._output.put(printable(redact(text)) + "\n", error=True)

    def announce_dump(self, dump_bytes: int) -> None:
        """Say once that a core dump is being printed: its lines are not shown."""
        if dump_bytes and not self._dump_announced and not self._json:
            self._show_lines(["** a core dump is coming"])
        self._dump_announced = bool(dump_bytes)

    def show_lost(self, count: int) -> None:
        """Show that so many items of the console are left out here."""
        if self._json:
            self._emit({"type": "lost", "count": count})
        else:
            self._show_lines(
                [f"!! {counted(count, 'lines')} not shown: this window did not keep up"]
            )

    def show_answer(self, lines: list[str]) -> None:
        """Show the modem's answer to a typed line."""
        if self._json:
            self._emit({"type": "answer", "lines": lines})
        else:
            self._show_lines([printable(line) for line in lines])

    def show_summary(self, counts: dict[str, int]) -> None:
        """Show, at the end, how much was read."""
        if self._json:
            self._emit({"summary": counts})
            return
        self._end_damage()
        shown = [counted(n, name.replace("_", " ")) for name, n in counts.items() if n]
        self.note(", ".join(shown) or "nothing was heard")

    def close(self) -> None:
        """Wait until all is shown, but not for a terminal that takes nothing."""
        self._output.close()

    def _is_more_damage(self, item: ConsoleItem) -> bool:
        """Return True if a line is damaged as the one before: such lines are only counted."""
        from agent.console.dump_lines import DamagedDumpLine

        damage = item.reason if isinstance(item, DamagedDumpLine) else ""
        if damage and damage == self._damage:
            self._more_damage += 1
            return True
        self._end_damage()
        self._damage = damage
        return False

    def _end_damage(self) -> None:
        if self._more_damage:
            self._show_lines([f"!! and {self._more_damage} more such lines"])
        self._more_damage = 0

    def _show_lines(self, lines: list[str]) -> None:
        if lines:
            self._output.put("".join(f"{line}\n" for line in lines))

    def _emit(self, value: object) -> None:
        self._output.put(json_line(value))

    def _not_shown(self, lines: int) -> str:
        if self._json:
            return json_line({"type": "lost", "count": lines}).rstrip("\n")
        return f"!! {counted(lines, 'lines')} not shown: the terminal took nothing meanwhile"

    def _lines_of(self, item: ConsoleItem) -> list[str]:
        """Return one item as lines for a person."""
        from agent.console.chunk_lines import ChunkLine, DamagedChunk
        from agent.console.dump_lines import CapturedDump, DamagedDumpLine
        from agent.console.line_classifier import Overlong
        from agent.console.log_line import LogLine

        if isinstance(item, LogLine):
            colour = _COLOURS.get(item.level or "", "") if self._colours else ""
            return [f"{colour}{printable(item.line)}{_RESET if colour else ''}"]
        if isinstance(item, ChunkLine):
            self._chunks += 1
            return [f"** chunk {self._chunks}: {counted(len(item.chunk), 'bytes')}"]
        if isinstance(item, CapturedDump):
            from agent.cli.capture.zephyr_dumps import describe_dump, format_dump

            text = format_dump(describe_dump(item, self._symbols))
            return [f"** {printable(line)}" for line in text.splitlines()]
        if isinstance(item, DamagedChunk):
            return [f"!! a chunk is damaged, and lost: {printable(item.reason)}"]
        if isinstance(item, DamagedDumpLine):
            return [f"!! a line of a core dump is damaged: {printable(item.reason)}"]
        if isinstance(item, Overlong):
            return [f"!! a line of {item.size} bytes is not read"]
        return []  # a fault or a restart: its line was shown


def _describe(item: ConsoleItem, symbols: ElfSymbols | None) -> dict[str, object]:
    from agent.console.chunk_lines import ChunkLine, DamagedChunk
    from agent.console.dump_lines import CapturedDump, DamagedDumpLine
    from agent.console.fault_lines import FaultText, Reboot
    from agent.console.log_line import LogLine

    if isinstance(item, LogLine):
        return {"type": "log", **asdict(item)}
    if isinstance(item, ChunkLine):
        return {"type": "chunk", "chunk": item.chunk.hex()}
    if isinstance(item, DamagedChunk):
        text = item.text.decode("utf-8", "backslashreplace")
        return {"type": "damaged_chunk", "text": text, "reason": item.reason}
    if isinstance(item, CapturedDump):
        from agent.cli.capture.zephyr_dumps import describe_dump

        return {"type": "coredump", **describe_dump(item, symbols)}
    if isinstance(item, DamagedDumpLine):
        text = item.text.decode("utf-8", "backslashreplace")
        return {"type": "damaged_dump_line", "text": text, "reason": item.reason}
    if isinstance(item, FaultText):
        return {"type": "fault", **asdict(item)}
    if isinstance(item, Reboot):
        return {"type": "reboot", **asdict(item)}
    text = item.text.decode("utf-8", "backslashreplace")
    return {"type": "overlong", "text": text, "bytes": item.size}
