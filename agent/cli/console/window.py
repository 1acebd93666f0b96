"""The output of `cellagent console`, for a person or a program."""

import sys
from dataclasses import asdict

from agent.cli.capture.zephyr_dumps import describe_dump, format_dump
from agent.cli.console.paced_output import PacedOutput
from agent.cli.framework.command import json_line
from agent.cli.framework.safe_text import printable
from agent.cli.framework.terminal import colours
from agent.console.chunk_lines import ChunkLine, DamagedChunk
from agent.console.dump_lines import CapturedDump, DamagedDumpLine
from agent.console.fault_lines import FaultText, Reboot
from agent.console.line_classifier import ConsoleItem, Overlong
from agent.console.log_line import RANK, LogLine
from agent.observability.coredumps.symbols import ElfSymbols
from agent.redact import redact
from at.protocol.counts import counted

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[33m", "debug": "\x1b[2m"}
_RESET = "\x1b[0m"


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
        match item:
            case LogLine():
                colour = _COLOURS.get(item.level or "", "") if self._colours else ""
                return [f"{colour}{printable(item.line)}{_RESET if colour else ''}"]
            case ChunkLine():
                self._chunks += 1
                return [f"** chunk {self._chunks}: {counted(len(item.chunk), 'bytes')}"]
            case CapturedDump():
                text = format_dump(describe_dump(item, self._symbols))
                return [f"** {printable(line)}" for line in text.splitlines()]
            case DamagedChunk():
                return [f"!! a chunk is damaged, and lost: {printable(item.reason)}"]
            case DamagedDumpLine():
                return [f"!! a line of a core dump is damaged: {printable(item.reason)}"]
            case Overlong():
                return [f"!! a line of {item.size} bytes is not read"]
            case FaultText() | Reboot():
                return []  # its line was shown


def _describe(item: ConsoleItem, symbols: ElfSymbols | None) -> dict[str, object]:
    match item:
        case LogLine():
            return {"type": "log", **asdict(item)}
        case ChunkLine():
            return {"type": "chunk", "chunk": item.chunk.hex()}
        case CapturedDump():
            return {"type": "coredump", **describe_dump(item, symbols)}
        case DamagedChunk():
            return {"type": "damaged_chunk", "text": _text(item.text), "reason": item.reason}
        case DamagedDumpLine():
            return {"type": "damaged_dump_line", "text": _text(item.text), "reason": item.reason}
        case Overlong():
            return {"type": "overlong", "text": _text(item.text), "bytes": item.size}
        case FaultText():
            return {"type": "fault", **asdict(item)}
        case Reboot():
            return {"type": "reboot", **asdict(item)}


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
