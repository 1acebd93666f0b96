"""Redacting what names no secret and nobody: lines of a log, as most lines are, and one endless."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trials.measure import Row, T

from agent.console.log_line import parse_line
from agent.redact import redact
from at.transcripts.redaction.redactor import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NAME = "redaction"
LOG_RATIO, RECORDING_RATIO, DOUBLE_RATIO = 4.0, 11.0, 2.6
LINES = [
    "[00:00:10.123,456] <inf> app: a line of log text, sixty bytes",
    "[00:00:10.123,456] <wrn> net: 3 of 14 chunks wait for a network, 1200 bytes",
    "[00:00:10.123,456] <inf> lte_lc: RRC mode: Connected",
]


def run(smoke: bool) -> Iterator[Row]:
    rounds = 300 if smoke else 3000
    raw = [line.encode() for line in LINES]
    redactor = Redactor(identity=True)
    control = cost_us(parse_line, raw, rounds)
    seen = f"parsing it as a console's {control:.1f} us"
    logged = cost_us(redact, LINES, rounds)
    yield Row("a line of a log or message", logged, "us", LOG_RATIO * control, seen)
    recorded = cost_us(redactor.clean_answer, raw, rounds)
    yield Row("a log line of a recording", recorded, "us", RECORDING_RATIO * control, seen)

    size = 1 << (16 if smoke else 20)
    for what in ("x", "41 54 2b ", "&quot;", '+CIMI: 1,"'):
        one, two = (cost_us(redact, [what * (n // len(what))], 3) for n in (size, 2 * size))
        seen = f"half of it {one / 1e6:.2f} s"
        label = f"{2 * size >> 10} kB of {what.strip()} without a line end"
        yield Row(label, two / 1e6, "s", DOUBLE_RATIO * one / 1e6, seen)


def cost_us(function: Callable[[T], object], lines: Sequence[T], rounds: int) -> float:
    """Return what a call costs in microseconds of processor time, at best."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time_ns()
        for line in lines:
            function(line)
        best = min(best, time.process_time_ns() - started)
    return best / 1000 / len(lines)
