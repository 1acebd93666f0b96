"""Whether the bytes that are sent, one after the other, are those of a step. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from at.protocol.redaction.command_redaction import MARKER
from at.transcripts.rules import IMEI_DIGITS, Rule

if TYPE_CHECKING:
    from at.transcripts.steps import TranscriptStep

WILD = re.compile(MARKER.pattern.encode())
_QUOTE = 0x22
_LEFT = -1  # in place of how far a part is matched: it is matched whole
_HEX = frozenset(b"0123456789abcdefABCDEF")
_DIGITS = frozenset(b"0123456789")
_LINE_ENDS = frozenset(b"\r\n")


@dataclass(frozen=True, slots=True)
class _Literal:
    data: bytes

    def ends_before(self, _done: int, _byte: int, _quotes: int) -> bool:
        return False

    def taken(self, done: int, sent: bytearray, _quotes: int) -> Iterator[int]:
        if sent[-1] == self.data[done]:
            yield _LEFT if done + 1 == len(self.data) else done + 1


@dataclass(frozen=True, slots=True)
class _Ruled:
    """A rule. How far it is: 1 behind the sign of a number, 2 behind a digit; an IMEI, bytes."""

    rule: Rule

    def ends_before(self, done: int, _byte: int, _quotes: int) -> bool:
        return self.rule is Rule.ANY or (self.rule is not Rule.IMEI and done == 2)

    def taken(self, done: int, sent: bytearray, quotes: int) -> Iterator[int]:
        byte = sent[-1]
        if self.rule is Rule.ANY:
            if byte not in _LINE_ENDS or quotes % 2:
                yield 0
        elif self.rule is Rule.HEX:
            if byte in _HEX:
                yield 2
        elif self.rule is Rule.INT and byte == ord("-") and not done:
            yield 1
        elif byte in _DIGITS:
            if self.rule is Rule.INT:
                yield 2
            elif done + 1 < IMEI_DIGITS:
                yield done + 1
            elif self.rule.holds(bytes(sent[-IMEI_DIGITS:])):
                yield _LEFT


@dataclass(frozen=True, slots=True)
class _Secret:
    """A redacted secret: `size` bytes, or up to the byte that `follows` it in the transcript.

    In a secret that has quotes of its own, that byte stands behind them; the end of the line also
    behind those before it (`quotes`). The last part of a step takes that byte as its own.
    """

    marker: bytes
    size: int | None
    follows: bytes
    quotes: int
    is_last: bool

    def ends_before(self, done: int, byte: int, _quotes: int) -> bool:
        return self.size is None and not self.is_last and self._ends(done, byte)

    def taken(self, done: int, sent: bytearray, _quotes: int) -> Iterator[int]:
        byte = sent[-1]
        if self.size is not None:
            yield _LEFT if done + 1 == self.size else done + 1
        elif not self._ends(done, byte):
            yield done + (byte == _QUOTE)
        elif self.is_last:
            yield _LEFT

    def _ends(self, quotes: int, byte: int) -> bool:
        even = (quotes + self.quotes) % 2 == 0
        return bytes([byte]) == self.follows and (byte == _QUOTE or even)


_Part = _Literal | _Ruled | _Secret


class SentMatch:
    """Matches one step. `sent` are the bytes so far, as long as they fit."""

    def __init__(self, step: TranscriptStep, terminator: bytes) -> None:
        self.step, self._terminator = step, terminator
        self.sent = bytearray()
        self._reached = {(0, 0)}  # part, and how far it is matched; more than one behind a rule
        self._quotes = 0
        self._begins: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    @cached_property
    def _parts(self) -> list[_Part]:
        return list(_parts(self.step, self._terminator))

    @property
    def whole(self) -> bool:
        """Whether all of the step was sent."""
        return (len(self._parts), 0) in self._reached

    @property
    def fixed(self) -> bytes | None:
        """All that is to be sent, as long as nothing was; None if some of it varies."""
        varies = self.sent or self.step.varying or WILD.search(self.step.data)
        return None if varies else self.step.data

    @property
    def begun(self) -> bytes:
        """What was sent so far, with the markers of the transcript in place of secrets."""
        text, done = b"", 0
        for number, part in enumerate(self._parts):
            if isinstance(part, _Secret) and number in self._begins:
                text += self.sent[done : self._begins[number]]
                done = self._ends.get(number, len(self.sent))
                text += part.marker if number in self._ends else b""
        return text + bytes(self.sent[done:])

    def take(self, byte: int) -> bool:
        """Add a byte that was sent; return False, and leave all as it is, if it does not fit."""
        self.sent.append(byte)
        reached = {
            there for number, done in self._reached for there in self._after(number, done, byte)
        }
        if not reached:
            self.sent.pop()
            return False
        self._reached = reached
        self._quotes += byte == _QUOTE
        return True

    def _after(self, number: int, done: int, byte: int) -> Iterator[tuple[int, int]]:
        if number == len(self._parts):
            return
        part = self._parts[number]
        if isinstance(part, _Secret):
            self._begins.setdefault(number, len(self.sent) - 1)
        if part.ends_before(done, byte, self._quotes):
            self._ends[number] = len(self.sent) - 1
            yield from self._after(number + 1, 0, byte)
        for after in part.taken(done, self.sent, self._quotes):
            if after == _LEFT:
                self._ends[number] = len(self.sent)
            yield (number + 1, 0) if after == _LEFT else (number, after)


def _parts(step: TranscriptStep, terminator: bytes) -> Iterator[_Part]:
    done = 0
    for varying in step.varying:
        yield from _fixed(step.data, done, varying.begin, terminator)
        yield _Ruled(varying.rule)
        done = varying.end
    yield from _fixed(step.data, done, len(step.data), terminator)


def _fixed(data: bytes, begin: int, end: int, terminator: bytes) -> Iterator[_Part]:
    for wild in WILD.finditer(data, begin, end):
        if wild.start() > begin:
            yield _Literal(data[begin : wild.start()])
        begin = wild.end()
        follows = data[begin : begin + 1] or terminator[-1:]
        # The end of a line ends no line while a quote is open, in the secret or before it.
        quotes = data.count(b'"', 0, wild.start()) if follows in b"\r\n" else 0
        size = int(wild[2]) if wild[2] else None
        yield _Secret(wild.group(), size, follows, quotes, begin == len(data))
    if begin < end:
        yield _Literal(data[begin:end])
