"""What `cellagent console` shows of what the kit prints: to a person, or to a program."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent.cli.frame import emit, note, options
from agent.cli.terminal import printable

if TYPE_CHECKING:
    from agent.console.reader import ConsoleItem

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[33m", "debug": "\x1b[2m"}
_RESET = "\x1b[0m"
RANK = {"debug": 0, "info": 1, "warning": 2, "error": 3}


class ConsoleWindow:
    """What a person, or a program, is shown."""

    def __init__(self, level: str | None, match: str) -> None:
        self._floor = RANK[level] if level else -1
        self._match = match
        self._json = options().json
        self._chunks = 0
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def show(self, item: ConsoleItem) -> None:
        """Show one thing that was heard."""
        from agent.console.log_line import LogLine

        if isinstance(item, LogLine):
            if item.level is not None and RANK[item.level] < self._floor:
                return
            if self._match and self._match not in item.line:
                return
        if self._json:
            emit(_describe(item))
            return
        if isinstance(item, LogLine):
            colour = _COLOURS.get(item.level or "", "") if self._colours else ""
            text = printable(item.line)
            sys.stdout.write(f"{colour}{text}{_RESET if colour else ''}\n")
        else:
            for line in self._told(item):
                sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()

    def show_lost(self, count: int) -> None:
        """Show that things which were heard are not shown here."""
        if self._json:
            emit({"type": "lost", "count": count})
        else:
            sys.stdout.write(f"!! {count} lines are not shown: this window did not keep up\n")
            sys.stdout.flush()

    def show_answer(self, lines: list[str]) -> None:
        """Show what the modem answers to a line that was typed."""
        if self._json:
            emit({"type": "answer", "lines": lines})
        else:
            sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
            sys.stdout.flush()

    def sum_up(self, counts: dict[str, int]) -> None:
        """Show, at the end, how much was heard."""
        if self._json:
            emit({"summary": counts})
            return
        shown = [f"{value} {name.replace('_', ' ')}" for name, value in counts.items() if value]
        note(", ".join(shown) or "nothing was heard")

    def _told(self, item: ConsoleItem) -> list[str]:
        """Return what was lifted out as lines for a person."""
        from agent.console.chunk_lines import ChunkLine, DamagedChunk
        from agent.console.dump_lines import CapturedDump, DamagedDumpLine
        from agent.console.reader import Overlong

        if isinstance(item, ChunkLine):
            self._chunks += 1
            return [f"** chunk {self._chunks}: {len(item.chunk)} bytes"]
        if isinstance(item, CapturedDump):
            from agent.cli.zephyr_dumps import describe_dump, tell_dump

            return [f"** {line}" for line in tell_dump(describe_dump(item)).splitlines()]
        if isinstance(item, DamagedChunk):
            return [f"!! a chunk is damaged, and lost: {item.reason}"]
        if isinstance(item, DamagedDumpLine):
            return [f"!! a line of a core dump is damaged: {item.reason}"]
        if isinstance(item, Overlong):
            return [f"!! a line of {item.size} bytes is not read"]
        return []  # a fault or a restart: its line was shown


def _describe(item: ConsoleItem) -> dict[str, Any]:
    from agent.console.chunk_lines import ChunkLine, DamagedChunk
    from agent.console.dump_lines import CapturedDump, DamagedDumpLine
    from agent.console.faults import FaultText, Reboot
    from agent.console.log_line import LogLine

    if isinstance(item, LogLine):
        return {"type": "log", **asdict(item)}
    if isinstance(item, ChunkLine):
        return {"type": "chunk", "chunk": item.chunk.hex()}
    if isinstance(item, DamagedChunk):
        text = item.text.decode("utf-8", "backslashreplace")
        return {"type": "damaged_chunk", "text": text, "reason": item.reason}
    if isinstance(item, CapturedDump):
        from agent.cli.zephyr_dumps import describe_dump

        return {"type": "coredump", **describe_dump(item)}
    if isinstance(item, DamagedDumpLine):
        text = item.text.decode("utf-8", "backslashreplace")
        return {"type": "damaged_dump_line", "text": text, "reason": item.reason}
    if isinstance(item, FaultText):
        return {"type": "fault", **asdict(item)}
    if isinstance(item, Reboot):
        return {"type": "reboot", **asdict(item)}
    text = item.text.decode("utf-8", "backslashreplace")
    return {"type": "overlong", "text": text, "bytes": item.size}
