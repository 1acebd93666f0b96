"""A recording made anew that keeps what a person wrote into the old one: rules, marks, comments.

Both are aligned, command by command and then line by line: a new line that fits an old one, with
its rules, takes its place. Pure.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from at.protocol.errors import TranscriptError
from at.transcripts.exchanges import Exchange, split_exchanges
from at.transcripts.step_matching import spans
from at.transcripts.steps import WITH_RULES, Direction, TranscriptStep, format_step
from at.transcripts.transcript import (
    Transcript,
    format_transcript,
    load_transcript,
    parse_transcript,
)

T = TypeVar("T")
_FAULTS = frozenset({Direction.SILENCE, Direction.RESET, Direction.GARBAGE})
_HEADER = re.compile(r"#\s*([A-Za-z][A-Za-z-]*)\s*:")


def refreshed(text: str, new: Transcript) -> str:
    """Return `new` as text, with the rules, marks and comments of `text`, its former recording.

    That is of version 2: one of version 1 has no rules, and is replaced whole. What may be left out
    stays where it was, but a notice that now came elsewhere. Raises TranscriptError where `text`
    cannot be read.
    """
    old = parse_transcript(text)
    if old.version != WITH_RULES:
        return format_transcript(new)
    header = {**old.header, **new.header, "transcript": WITH_RULES}
    were = split_exchanges(old.steps, old.terminator)
    are = split_exchanges(new.steps, new.terminator)
    pairs = _aligned(were, are, _alike)
    for number, exchange in enumerate(were):  # those in any order, which may have come in another
        if exchange.group and number not in pairs:
            free = (n for n in range(len(are)) if n not in pairs.values())
            found = next((n for n in free if _alike(exchange, are[n])), None)
            if found is not None:
                pairs[number] = found
    merge = _Merge(text, old, Transcript((), header).terminator)
    taken = {there: here for here, there in pairs.items()}
    for number, exchange in enumerate(are):
        former = were[taken[number]] if number in taken else None
        merge.add(former.steps if former else (), exchange.steps)
        if former and former.group:
            merge.leave_group()
    for number, exchange in enumerate(were):
        if number not in pairs and not exchange.optional:
            merge.drop(exchange.steps)
    return merge.text(header)


def refreshed_file(former: Path, recorded: Path) -> str:
    """Return the text of a recording, with what a person wrote into the former one's file.

    Raises TranscriptError, also where the former one cannot be read.
    """
    new = load_transcript(recorded)
    try:
        return refreshed(former.read_text("utf-8", "surrogateescape"), new)
    except TranscriptError as error:
        what = f"{former} is not recorded over, for its rules would be lost: {error}"
        raise TranscriptError(what, hint=error.hint, line=error.line, file=former) from error


class _Merge:
    """What becomes of the lines of the former recording, by their numbers from 1."""

    def __init__(self, text: str, old: Transcript, terminator: bytes) -> None:
        self._lines = text.splitlines()
        self._terminator = terminator
        self._in_order = [s.line for s in old.steps if s.direction is Direction.IN_ORDER]
        first = old.steps[0].line if old.steps else len(self._lines) + 1
        self._header_ends = first - 1
        self._place = self._header_ends
        self._instead: dict[int, list[str]] = {}
        self._behind: defaultdict[int, list[TranscriptStep]] = defaultdict(list)
        self._left_out: list[TranscriptStep] = []

    def add(self, old: Sequence[TranscriptStep], new: Sequence[TranscriptStep]) -> None:
        """Put the steps of an exchange in place of those of the same command, if there are some."""
        pairs = _aligned(old, new, _fits)
        taken = {there: here for here, there in pairs.items()}
        for number, step in enumerate(new):
            if number not in taken:
                self._behind[self._place].append(step)
                continue
            here = taken[number]
            if old[here].direction not in _FAULTS:
                self._instead[old[here].line] = [self._written(_with_rules(old[here], step))]
            while here + 1 < len(old) and here + 1 not in pairs and _stays(old[here + 1]):
                here += 1
            self._place = old[here].line
        unpaired = [step for n, step in enumerate(old) if n not in pairs]
        self.drop([step for step in unpaired if not _stays(step)])
        self._left_out += [step for step in unpaired if step.optional]

    def leave_group(self) -> None:
        """Go on behind the mark that ends a group: what is new is not in any order."""
        self._place = next(line for line in self._in_order if line > self._place)

    def drop(self, steps: Sequence[TranscriptStep]) -> None:
        """Leave out steps that the new recording has not."""
        self._instead |= {step.line: [] for step in steps}

    def text(self, header: Mapping[str, str]) -> str:
        """Return all of it, with the values of `header`."""
        self._move()
        shown, left = [], dict(header)
        for number, line in enumerate(["", *self._lines]):
            name = _HEADER.match(line) if number <= self._header_ends else None
            if name is not None and name[1].lower() in left:
                shown.append(f"# {name[1]}: {left.pop(name[1].lower())}")
            elif number:
                shown += self._instead.get(number, [line])
            if number == self._header_ends:
                shown += [f"# {key}: {value}" for key, value in left.items()]
            shown += map(self._written, self._behind[number])
        return "\n".join([*shown, ""])

    def _move(self) -> None:
        """Put what was left out of its place where it came now: it would be there twice."""
        for old in self._left_out:
            for steps in self._behind.values():
                came = (n for n, s in enumerate(steps) if not s.optional and _fits(old, s))
                if (number := next(came, None)) is not None:
                    steps[number] = _with_rules(old, steps[number])
                    self.drop([old])
                    break

    def _written(self, step: TranscriptStep) -> str:
        return format_step(step, self._terminator, WITH_RULES)


def _stays(step: TranscriptStep) -> bool:
    """Return whether a step stays that the new recording has not."""
    return step.direction in _FAULTS or step.optional


def _alike(old: Exchange, new: Exchange) -> bool:
    """Return whether two exchanges are of the same command, or of none."""
    if old.asks and new.asks:
        return _fits(old.steps[0], new.steps[0])
    return old.asks == new.asks


def _fits(old: TranscriptStep, new: TranscriptStep) -> bool:
    """Return whether a new step is what an old one stands for."""
    if old.direction in _FAULTS:  # a restart is recorded as the line that tells of it
        return bool(old.data) and new.direction is Direction.RECEIVED and new.data == old.data
    return old.direction is new.direction and spans(old, new.data) is not None


def _with_rules(old: TranscriptStep, new: TranscriptStep) -> TranscriptStep:
    """Return a new step with the rules of the old one: what it has there is their example now."""
    places = spans(old, new.data) or []
    varying = tuple(
        replace(rule, begin=begin, end=end)
        for rule, (begin, end) in zip(old.varying, places, strict=True)
    )
    return replace(new, varying=varying, optional=old.optional)


def _aligned(old: Sequence[T], new: Sequence[T], fits: Callable[[T, T], bool]) -> dict[int, int]:
    """Return the numbers in `new` of the most of `old` that fit it, both in their order."""
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            one = best[i + 1][j + 1] + 1 if fits(old[i], new[j]) else 0
            best[i][j] = max(one, best[i + 1][j], best[i][j + 1])
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(old) and j < len(new):
        if best[i][j] == best[i + 1][j + 1] + 1 and fits(old[i], new[j]):
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
