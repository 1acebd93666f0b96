"""Log lines as Zephyr prints them: time, level, module, text. Pure.

[00:00:10.123,456] <inf> module: text      the log subsystem, with or without time
<err> [main] module: text                  with the thread (CONFIG_LOG_THREAD_ID_PREFIX)
E: text                                    its minimal mode, MCUboot
[00:00:10.123] E: module: text             the same with a stamp
E (1234) module: text                      ESP-IDF, on a companion chip

A shell prompt, a tag, and the time stamp of a recording program may precede the line.
"""

import re
from dataclasses import dataclass

FORMATTER_LIMIT = 127
"""Characters after which the device's formatter cuts a line."""

LEVELS = {"err": "error", "wrn": "warning", "inf": "info", "dbg": "debug"}
RANK = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_LETTERS = {"E": "error", "W": "warning", "I": "info", "D": "debug", "V": "debug"}

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")
"""Colours, cursor moves of the shell's prompt, titles."""

_STANDARD = re.compile(
    r"(?P<prefix>.*?)(?:\[(?P<time>[^\[\]]{1,40})\] )?<(?P<level>err|wrn|inf|dbg)> "
    r"(?:\[(?P<thread>[^\[\]]{1,64})\] (?=[\w./@-]{1,64}: ?))?"
    r"(?:(?P<module>[\w./@-]{1,64}): ?)?(?P<text>.*)",
    re.DOTALL,
)
_MINIMAL = re.compile(
    r"(?:[^\s$>#]{0,32}[$>#] )?(?:\[(?P<time>[\d:., ]{4,24})\] )?(?P<level>[EWID]): "
    r"(?(time)(?:(?P<module>[\w./@-]{1,64}): )?)(?P<text>.*)",
    re.DOTALL,
)
_ESP_IDF = re.compile(
    r"(?P<level>[EWIDV]) \((?P<time>[\d:. -]{1,24})\) (?P<module>[^\s:]{1,64}): (?P<text>.*)",
    re.DOTALL,
)
_PREFIX = re.compile(r"(?:.*[$>#] )?(?:\[[^\[\]]*\] ?|[\d:.,/TZ+-]+ )*", re.DOTALL)
_DROPPED = re.compile(r"--- (\d+) messages? dropped ---")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that the kit printed, without colours; None for what the line does not name."""

    text: str
    level: str | None = None
    module: str | None = None
    time: str | None = None
    line: str = ""
    """The whole line, without colours, as the kit printed it."""
    cut: bool = False
    """Whether it is as long as the formatter allows: its end may be missing."""
    thread: str | None = None


def strip_ansi(line: str) -> str:
    """Return `line` without terminal sequences."""
    return ANSI.sub("", line) if "\x1b" in line else line


def parse_line(raw: bytes) -> LogLine:
    """Parse one line without its line end, in any of the forms."""
    line = strip_ansi(raw.decode("utf-8", "backslashreplace"))
    cut = len(line) >= FORMATTER_LIMIT
    if "<" in line and (match := _STANDARD.fullmatch(line)) and _PREFIX.fullmatch(match["prefix"]):
        return LogLine(
            match["text"],
            LEVELS[match["level"]],
            match["module"],
            match["time"],
            line,
            cut,
            match["thread"],
        )
    if match := _MINIMAL.fullmatch(line) or _ESP_IDF.fullmatch(line):
        level = _LETTERS[match["level"]]
        return LogLine(match["text"], level, match["module"], match["time"], line=line, cut=cut)
    return LogLine(line, line=line, cut=cut)


def dropped_messages(line: str) -> int:
    """Return the number of a line that says how many log messages the kit dropped; else 0."""
    match = _DROPPED.search(line)
    return int(match[1]) if match else 0
