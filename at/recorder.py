"""Turns the bytes of a session into the steps of a transcript, without their secrets. No I/O.

A step is written when its line is whole, since half a token does not look like one, nor half a
command. What has begun and not ended stays back, but for a prompt that is answered. At `LONGEST`
bytes a line is broken; what follows within an open quote is left out, since it may be a secret.
"""

from __future__ import annotations

from at.redaction import Redactor
from at.transcript import Direction, Step

LONGEST = 16384
_QUOTE = b'"'
_PROMPTS = (b"> ", b"@", b"$ ", b"$ \x1b[m")
_LEFT_OUT = b"{redacted:overlong}"


class Recorder:
    """Takes pieces as they went over the line, gives whole steps, oldest first."""

    def __init__(self, redactor: Redactor, *, terminator: bytes = b"\r") -> None:
        self._redactor = redactor
        self._ends = {Direction.SENT: terminator, Direction.RECEIVED: b"\n"}
        self._pending = {Direction.SENT: bytearray(), Direction.RECEIVED: bytearray()}
        self._since: dict[Direction, float] = {}
        self._skipping: set[Direction] = set()

    def add(self, direction: Direction, data: bytes, at_s: float) -> list[Step]:
        """Take bytes that went in a direction at a time; return the steps that are whole."""
        steps: list[Step] = []
        received = self._pending[Direction.RECEIVED]
        if direction is Direction.SENT and received.endswith(_PROMPTS):
            steps += self._give(Direction.RECEIVED)
        pending = self._pending[direction]
        if direction in self._skipping:
            _, quote, data = data.partition(_QUOTE)
            if not quote:
                return steps
            self._skipping.discard(direction)
            pending += _LEFT_OUT
        self._since.setdefault(direction, at_s)
        pending += data
        while (end := self._line_end(direction)) > 0:
            steps.append(self._step(direction, bytes(pending[:end])))
            del pending[:end]
            if pending:
                self._since[direction] = at_s
        if len(pending) > LONGEST:
            quoted = pending.count(_QUOTE) % 2 == 1
            steps += self._give(direction)
            if quoted:
                self._skipping.add(direction)
        return steps

    def finish(self, at_s: float | None = None) -> list[Step]:
        """Return what is left; with a time, also that the link ended then."""
        steps = self._give(Direction.SENT) + self._give(Direction.RECEIVED)
        if at_s is not None:
            steps.append(Step(Direction.CLOSED, b"", at_s))
        return steps

    def _give(self, direction: Direction) -> list[Step]:
        pending = self._pending[direction]
        if not pending:
            return []
        data = bytes(pending)
        pending.clear()
        return [self._step(direction, data)]

    def _step(self, direction: Direction, data: bytes) -> Step:
        return Step(direction, self._redactor.clean(data), round(self._since.pop(direction), 6))

    def _line_end(self, direction: Direction) -> int:
        """Return where the first line ends outside quotes, 0 if none does."""
        pending, end = self._pending[direction], self._ends[direction]
        place = pending.find(end)
        while place >= 0:
            place += len(end)
            if pending.count(_QUOTE, 0, place) % 2 == 0:
                return place
            place = pending.find(end, place)
        return 0
