"""Makes a transcript of a terminal's log: time stamps, prefixes, both directions mixed. Pure.

Known: the marks of desktop tools (`modem >> AT`, `modem << OK`), of loggers (`TX:`/`RX:`,
`->`/`<-` either way round, `Sent:`/`Received:`), of ModemManager (`--> 'AT<CR>'`), and bare text,
where a line that begins like a command counts as sent. In a log with marks, a line without one is
skipped and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from at.protocol.errors import TranscriptError
from at.protocol.exchange import final_result
from at.protocol.values import name_before_colon
from at.transcripts.recorder import Recorder
from at.transcripts.redaction import Redactor
from at.transcripts.transcript import RECEIVED_END, Direction, Transcript, TranscriptStep

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Date and time, or time alone, in brackets or not; a fraction after a point, comma or colon.
_TIME = re.compile(
    r"\s*[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ,]+)?(\d{1,2}):(\d\d):(\d\d)"
    r"(?:[.,:](\d{1,9})(?:,(\d{3}))?)?\s*(?:Z|[+-]\d\d:?\d\d)?[\])]?\s*"
)
_SECONDS = re.compile(r"\s*\[\s*(\d{1,9}\.\d{1,9})\]\s*")
# How a line of the kit's own log begins: its time is received text, not the terminal's.
_ZEPHYR = re.compile(r"\[\d\d:\d\d:\d\d\.\d{3},\d{3}\] <\w{3}> ")
_LEVEL = re.compile(
    r"\s*\[?(?:TRACE|DEBUG|VERBOSE|INFO|NOTICE|WARN(?:ING)?|ERROR)\]?[\s:-]+(?=\S)", re.IGNORECASE
)
# The marks of tools, and the direction that each stands for.
_MARKS = tuple(
    (re.compile(pattern, re.IGNORECASE), direction)
    for pattern, direction in (
        (r"(?:modem|serial|uart\d?|at)\s*>>\s?", Direction.SENT),
        (r"(?:modem|serial|uart\d?|at)\s*<<\s?", Direction.RECEIVED),
        (r"\[?(?:TX|SENT|SEND|WRITE|WROTE|OUT)\s*(?::|->|>+|\])\s?", Direction.SENT),
        (r"\[?(?:RX|RECEIVED|RECV|READ|IN)\s*(?::|<-|<+|>+|\])\s?", Direction.RECEIVED),
        (r"(?:-+>|=+>|>>+|→|➤)\s?", Direction.SENT),
        (r"(?:<-+|<=+|<<+|←)\s?", Direction.RECEIVED),
        (r">\s(?=AT)", Direction.SENT),
        (r"<\s", Direction.RECEIVED),
    )
)
# ModemManager: its own prefix, then what went over the port in quotes, with <CR> and <LF>.
_QUOTED_PORT = re.compile(r"(?:.*\s)?(-->|<--) '(.*)'\s*")
_QUOTED_TIME = re.compile(r"\[(\d{9,10}\.\d{1,9})\]")
_QUOTED_END = re.compile(r"(?:<CR>|<LF>)+")
_COMMAND = re.compile(r"AT(?:$|[+%#&*^][A-Z0-9]|E[01]|I\d?$|Z\d?$)", re.IGNORECASE)
_SHOWN_END = re.compile(r"(?:\\r|\\n|<CR>|<LF>)+$")  # line ends that a tool spelt out
_HALF_A_DAY_S = 43200
_ENDS = {Direction.SENT: b"\r", Direction.RECEIVED: RECEIVED_END}


@dataclass(frozen=True, slots=True)
class Imported:
    """A transcript made from a log; `skipped` counts the lines of neither direction."""

    transcript: Transcript
    skipped: int


@dataclass(frozen=True, slots=True)
class _Line:
    direction: Direction | None
    text: str
    at_s: float | None
    """Seconds of the day, or since the log began."""


def import_log(text: str, *, keep_identity: bool = False) -> Imported:
    """Return the transcript of a log, redacted as a recording is.

    Raises TranscriptError if it holds no line of either side.
    """
    lines = _with_true_directions(
        [
            taken
            for line in re.split(r"\r\n|\n|\r", text)
            if line.strip()
            for taken in _quoted_port(line) or [_line(line)]
        ]
    )
    steps, skipped = _recorded(lines, Recorder(Redactor(identity=not keep_identity)))
    if not steps:
        raise TranscriptError(
            "the log holds no line that was sent or received",
            hint="known are AT lines, and marks such as >> and <<, TX: and RX:, -> and <-",
        )
    return Imported(Transcript(tuple(steps), _header(steps)), skipped)


def _header(steps: list[TranscriptStep]) -> dict[str, str]:
    """Return the header; firmware and device are in the log more often than not."""
    header = {"origin": "imported from a terminal's log"}
    received = b"".join(step.data for step in steps if step.direction is Direction.RECEIVED)
    for name, pattern in (("device", rb"\bnRF91\d\d-\w{4}\b"), ("firmware", rb"\bmfw[-_+\w.]+")):
        match = re.search(pattern, received)
        if match:
            header[name] = match.group().decode("ascii")
    return header


def _quoted_port(line: str) -> list[_Line]:
    """Return what a line of ModemManager's log says was sent or received; [] for another line."""
    match = _QUOTED_PORT.fullmatch(line)
    if match is None:
        return []
    direction = Direction.SENT if match[1] == "-->" else Direction.RECEIVED
    time = _QUOTED_TIME.search(line[: match.start(1)])
    at_s = None if time is None else float(time[1])
    texts = [text for text in _QUOTED_END.split(match[2]) if text]
    return [_Line(direction, text, at_s) for text in texts]


def _with_true_directions(lines: list[_Line]) -> list[_Line]:
    """Return the lines, with directions swapped if only the "received" ones are commands.

    The arrows of some tools point at the modem, those of others at the host.
    """
    commands = Counter(line.direction for line in lines if _COMMAND.match(line.text))
    if commands[Direction.SENT] or not commands[Direction.RECEIVED]:
        return lines
    other = {Direction.SENT: Direction.RECEIVED, Direction.RECEIVED: Direction.SENT}
    return [
        replace(line, direction=other.get(line.direction) if line.direction else None)
        for line in lines
    ]


def _line(line: str) -> _Line:
    """Parse a line: time, level, mark, text."""
    text = _COLOUR.sub("", line).replace("\x00", "")
    at_s: float | None = None
    for pattern, read in ((_TIME, _clock), (_SECONDS, _plain)):
        match = None if _ZEPHYR.match(text) else pattern.match(text)
        if match:
            at_s, text = read(match), text[match.end() :]
            break
    match = _LEVEL.match(text)
    if match:
        text = text[match.end() :]
    for mark, direction in _MARKS:
        match = mark.match(text.lstrip())
        if match:
            return _Line(direction, _without_line_end(text.lstrip()[match.end() :]), at_s)
    return _Line(None, _without_line_end(text), at_s)


def _without_line_end(text: str) -> str:
    """Return the text without line ends that a tool spelt out."""
    return _SHOWN_END.sub("", text.strip())


def _clock(match: re.Match[str]) -> float:
    hours, minutes, seconds, fraction, micros = match.groups()
    parts = f"0.{(fraction or '0') + (micros or '')}"
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(parts)


def _plain(match: re.Match[str]) -> float:
    return float(match.group(1))


def _recorded(lines: list[_Line], recorder: Recorder) -> tuple[list[TranscriptStep], int]:
    """Return the steps, and how many lines are of neither direction.

    A quoted text may run over several lines; those without a mark belong to it, too.
    """
    marks = {line.direction for line in lines} - {None}
    # A terminal may mark only what was typed: the rest came back.
    unmarked = Direction.RECEIVED if marks == {Direction.SENT} else None
    steps: list[TranscriptStep] = []
    skipped = 0
    quoted = dict.fromkeys((Direction.SENT, Direction.RECEIVED), False)
    elapsed = _Elapsed()
    for line in lines:
        direction, text = line.direction or next(filter(quoted.get, quoted), unmarked), line.text
        if direction is None and not marks:
            direction = _bare_direction(text, recorder)
            text = text.removeprefix("> ") if direction is Direction.RECEIVED else text
        if direction is None:
            skipped += 1
            continue
        at_s = elapsed.since_first(line.at_s)
        if direction is Direction.SENT and quoted[Direction.RECEIVED]:
            quoted[Direction.RECEIVED] = False  # its end was lost
            steps += recorder.end_received()
        is_data = direction is Direction.SENT and recorder.in_data_mode
        quoted[direction] ^= not is_data and text.count('"') % 2 == 1
        if not text and not quoted[direction]:
            continue  # the empty line before an answer
        end = b"\n" if quoted[direction] else _ENDS[direction]
        steps += recorder.add(direction, text.encode("utf-8", "surrogateescape") + end, at_s)
    return steps + recorder.finish(), skipped


def _bare_direction(text: str, recorder: Recorder) -> Direction:
    """Return the direction of a line in a log without marks."""
    answers = final_result(text) is not None or name_before_colon(text)
    is_data = recorder.in_data_mode and not answers
    return Direction.SENT if is_data or _COMMAND.match(text) else Direction.RECEIVED


class _Elapsed:
    """Turns times of a log into seconds since its first one, also over midnight."""

    def __init__(self) -> None:
        self._first: float | None = None

    def since_first(self, at_s: float | None) -> float | None:
        if at_s is None:
            return None
        if self._first is None:
            self._first = at_s
        elapsed = at_s - self._first
        if elapsed < -_HALF_A_DAY_S:
            elapsed += 2 * _HALF_A_DAY_S
        return max(0.0, elapsed)
