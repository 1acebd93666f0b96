"""The lines of a log: as the file has them, and as records of what was sent and received."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from at.protocol.line.items import final_result
from at.transcripts.logs.leads import CLOCK, KIT_LOG, KIT_MARK, LEADS, PLACE
from at.transcripts.logs.shapes import COMMAND, NAMED_ANSWER

_DAY_S = 86400
LONGEST_LINE = 16384
"""Characters of a line that is read in one piece."""


class Side(Enum):
    """The direction of a line; LOG: a log line of the kit, or of the tool that kept the log."""

    SENT = "sent"
    RECEIVED = "received"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, without its mark, its time and its end.

    A quoted text over several lines is one, with LF between them. `at_s` are seconds of the day or
    since the kit or the log began, None where the log has no time there.
    """

    side: Side
    text: str
    at_s: float | None = None
    number: int = field(default=0, compare=False)
    """The line of the file on which it begins, from 1; 0 where the log is a transcript."""


@dataclass(frozen=True, slots=True)
class Head:
    """A line of the file: what stands behind time, level and channel, and the whole."""

    text: str
    log: str
    """The whole line of the kit's log, if `text` is what stands behind a mark in it."""
    is_log: bool
    """Whether the line is one of the kit's log, also where `text` is behind a mark in it."""
    at_s: float | None
    raw: str
    number: int
    kit: str = ""
    """What a tool calls the port or the container that the line is of, "" where it says none."""


def without_leads(line: str, number: int) -> Head:
    """Return what a line of the file holds behind all that its tools set before it."""
    raw = line.replace("\x00", "")
    text = raw.lstrip()
    log, at_s, kit = "", None, ""
    leads = list(LEADS)
    while not (kit_log := KIT_LOG.match(text)) or KIT_MARK.match(text):
        log = log or (text.strip() if kit_log else "")
        match = next(filter(None, (lead.match(text) for lead in leads)), None)
        if match is None:
            break
        leads.remove(match.re)  # each stands there once
        text = text[match.end() :]
        at_s = _seconds(match) if at_s is None else at_s
        kit = kit or match.groupdict().get("kit", "")
    if kit_log and at_s is None and kit_log[1] and (clock := CLOCK.match(kit_log[1])):
        at_s = _seconds(clock)
    text = text.strip()
    if text.endswith(")"):
        text = PLACE.sub("", text)
    is_log = bool(log or KIT_LOG.match(text))
    return Head(text, log, is_log, at_s, raw, number, kit)


def _seconds(match: re.Match[str]) -> float | None:
    named = match.groupdict()
    if named.get("plain"):
        return float(named["plain"])
    if named.get("millis"):
        return int(named["millis"]) / 1000
    if named.get("microseconds"):
        return int(named["microseconds"]) / 1_000_000
    if "hours" not in named:
        return None
    fraction = float(f"0.{named['fraction'] or '0'}{named.get('micros') or ''}")
    hours = int(named["hours"])
    if half := named.get("half"):
        hours = hours % 12 + 12 * (half == "P")
    whole = hours * 3600 + int(named["minutes"]) * 60 + int(named["seconds"])
    return whole + fraction


def seconds_between(before_s: float, now_s: float) -> float:
    """Return the seconds from one time of a log to a later one, also over midnight.

    Less than 0 where the clock began anew, at a restart of the kit, or was put back.
    """
    passed_s = now_s - before_s
    return passed_s + _DAY_S if passed_s < -_DAY_S / 2 else passed_s


def is_answer(text: str) -> bool:
    """Return whether a line is an answer or a notice with a name, or a final result."""
    return NAMED_ANSWER.match(text) is not None or final_result(text) is not None


def begins_exchange(text: str) -> bool:
    """Return whether a line is a command, or an answer as `is_answer` knows it."""
    return is_answer(text) or COMMAND.match(text) is not None
