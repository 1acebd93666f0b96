"""Makes a transcript of a log that somebody kept: what was sent and received, redacted. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from at.transcripts.logs.lines import LogLine, Side, begins_exchange, seconds_between
from at.transcripts.logs.reader import ReadLog, Told, read_log, untold
from at.transcripts.logs.shapes import SHELL_ECHO
from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import RECEIVED_END, Direction, TranscriptStep
from at.transcripts.transcript import Transcript

_ENDS = {Direction.SENT: b"\r", Direction.RECEIVED: RECEIVED_END}


@dataclass(frozen=True, slots=True)
class Imported:
    """A transcript made from a log of a `shape`; `skipped` counts the lines of neither side.

    `missing` is the side of which the log has no line, None if it has both.
    """

    transcript: Transcript
    skipped: int
    shape: str
    missing: Direction | None


def import_log(log: bytes, *, keep_identity: bool = False, told: Told = untold) -> Imported:
    """Return the transcript of a log, redacted as a recording is.

    Raises TranscriptError if it is none of a modem's AT commands; the message says what it is like.
    """
    read = read_log(log, told)
    lines = [
        line
        for line in read.lines
        if line.side is not Side.LOG or (read.of_the_kit and not SHELL_ECHO.match(line.text))
    ]
    recorder = Recorder(Redactor(identity=not keep_identity))
    steps = _recorded(told("redacting", lines), recorder)
    present = {step.direction for step in steps}
    missing = next((side for side in _ENDS if side not in present), None)
    skipped = len(read.lines) - len(lines)
    return Imported(Transcript(tuple(steps), _header(read, steps)), skipped, read.shape, missing)


def _header(read: ReadLog, steps: list[TranscriptStep]) -> dict[str, str]:
    """Return the header; firmware and device are in the log more often than not."""
    header = {"origin": "imported from a terminal's log"}
    received = b"".join(step.data for step in steps if step.direction is Direction.RECEIVED)
    for name, pattern in (("device", rb"\bnRF91\d\d-\w{4}\b"), ("firmware", rb"\bmfw[-_+\w.]+")):
        match = re.search(pattern, received)
        if match:
            header[name] = match.group().decode("ascii")
    kept = ("device", "firmware", "origin", "dialect")
    return header | {name: read.header[name] for name in kept if name in read.header}


def _recorded(lines: Iterable[LogLine], recorder: Recorder) -> list[TranscriptStep]:
    steps: list[TranscriptStep] = []
    elapsed = _Elapsed()
    for line in lines:
        direction = Direction.SENT if line.side is Side.SENT else Direction.RECEIVED
        data = line.text.encode("utf-8", "surrogateescape") + _ENDS[direction]
        is_data = direction is Direction.SENT and recorder.in_data_mode
        if begins_exchange(line.text) and not is_data:
            steps += recorder.end_line(direction)  # no secret that was cut goes on with this
        steps += recorder.add(direction, data, elapsed.since_first(line.at_s))
        if line.text.count('"') % 2 and not is_data:
            steps += recorder.end_line(direction)  # the end of the quote was lost
    return steps + recorder.finish()


class _Elapsed:
    """Turns times of a log into seconds since its first one, which never go back."""

    def __init__(self) -> None:
        self._before: float | None = None
        self._elapsed_s = 0.0

    def since_first(self, at_s: float | None) -> float | None:
        if at_s is None:
            return None
        if self._before is not None:
            self._elapsed_s += max(0.0, seconds_between(self._before, at_s))
        self._before = at_s
        return self._elapsed_s
