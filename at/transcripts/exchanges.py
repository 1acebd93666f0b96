"""A session as exchanges, each a command with what came of it, and which may come next. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from at.protocol.errors import TranscriptError
from at.transcripts.steps import RECEIVED_END, Direction, TranscriptStep

_CLOSE = "a line `! in-order` ends what begins with `! any-order`"


@dataclass(frozen=True, slots=True)
class Exchange:
    """Steps from a command to the next one, its prompts and payload among them.

    Those of one `group`, a number but 0, come in any order. What came before the first command of
    the session or of a group is an exchange without one.
    """

    steps: tuple[TranscriptStep, ...]
    group: int = 0

    @property
    def asks(self) -> bool:
        """Whether it begins with a command."""
        return self.steps[0].direction is Direction.SENT

    @property
    def optional(self) -> bool:
        """Whether its command may be left out."""
        return self.asks and self.steps[0].optional


def split_exchanges(steps: Sequence[TranscriptStep], terminator: bytes) -> tuple[Exchange, ...]:
    """Return the exchanges of a session. Raises TranscriptError, which names the line."""
    found: list[Exchange] = []
    current: list[TranscriptStep] = []
    group, opened_at = 0, 0

    def end() -> None:
        if current:
            asks = current[0].direction is Direction.SENT
            found.append(Exchange(tuple(current), group if asks else 0))
            current.clear()

    for step in steps:
        if step.direction in {Direction.ANY_ORDER, Direction.IN_ORDER}:
            _check_edge(step, opened_at)
            end()
            opens = step.direction is Direction.ANY_ORDER
            group, opened_at = (group_of(found) + 1, step.line or 1) if opens else (0, 0)
            continue
        if step.direction is Direction.SENT and not _goes_on(current, terminator):
            end()
            if (step.optional or opened_at) and not step.data.endswith(terminator):
                what = "be optional" if step.optional else "stand behind ! any-order"
                raise TranscriptError(
                    f"line {step.line}: only a whole command may {what}",
                    hint="write it as one line, such as `> AT+CGMR`",
                    line=step.line,
                )
        current.append(step)
    end()
    if opened_at:
        what = f"line {opened_at}: ! any-order has no end"
        raise TranscriptError(what, hint=_CLOSE, line=opened_at)
    return tuple(found)


def _check_edge(step: TranscriptStep, opened_at: int) -> None:
    """Raise TranscriptError for an edge of a group that does not fit the one before it."""
    opens = step.direction is Direction.ANY_ORDER
    if opens == bool(opened_at):
        before = f"that of line {opened_at}" if opens else "no ! any-order"
        raise TranscriptError(
            f"line {step.line}: ! {step.direction.value} behind {before}",
            hint=_CLOSE,
            line=step.line,
        )


def group_of(exchanges: Sequence[Exchange]) -> int:
    """Return the number of the last group, 0 where there is none."""
    return max((exchange.group for exchange in exchanges), default=0)


def _goes_on(steps: Sequence[TranscriptStep], terminator: bytes) -> bool:
    """Return whether what is sent next goes on with the command: it is in pieces, or prompted."""
    lines = [s for s in steps if s.direction in {Direction.SENT, Direction.RECEIVED}]
    if not lines or steps[0].direction is not Direction.SENT:
        return False
    is_sent = lines[-1].direction is Direction.SENT
    return not lines[-1].data.endswith(terminator if is_sent else RECEIVED_END)


class Course:
    """Which exchanges of a session were, and which may come next."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._left = dict(enumerate(exchanges))

    @property
    def left(self) -> list[Exchange]:
        """Those that have not been, nor been left out."""
        return list(self._left.values())

    def due(self) -> list[TranscriptStep]:
        """Return what comes now without a command; it has been then."""
        steps: list[TranscriptStep] = []
        while waiting := [n for n in self._reached() if not self._left[n].asks]:
            steps += self._left.pop(waiting[0]).steps
        return steps

    def candidates(self) -> dict[int, Exchange]:
        """Return the exchanges whose command may come now, by number, in the session's order."""
        return {n: self._left[n] for n in self._reached() if self._left[n].asks}

    def take(self, number: int) -> None:
        """Note that an exchange has been; optional ones before it were left out."""
        group = self._left.pop(number).group
        for earlier in [n for n in self._left if n < number]:
            if not group or self._left[earlier].group != group:
                del self._left[earlier]

    def _reached(self) -> Iterator[int]:
        awaited: int | None = None  # the group of a command that may not be left out
        for number, exchange in self._left.items():
            if awaited is not None and (not awaited or exchange.group != awaited):
                return
            yield number
            if not exchange.optional:
                awaited = exchange.group
