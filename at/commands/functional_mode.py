"""Functional mode and error format: +CFUN +CMEE (TS 27.007, 8.2 and 9.1).

+CFUN answers OK long before the modem is on a network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from at.protocol.command import Command, Form, OkCommand
from at.protocol.values import Record, only_row


class FunctionalMode(IntEnum):
    """<fun> of +CFUN, as the nRF91's manual names it. Other vendors have more modes."""

    OFF = 0
    NORMAL = 1
    RECEIVE_ONLY = 2
    FLIGHT = 4
    LTE_OFF = 20
    LTE_ON = 21
    GNSS_OFF = 30
    GNSS_ON = 31
    UICC_OFF = 40
    UICC_ON = 41
    FLIGHT_UICC_ON = 44


LTE_MODES = frozenset({FunctionalMode.NORMAL, FunctionalMode.RECEIVE_ONLY, FunctionalMode.LTE_ON})
"""The modes in which LTE runs: the modem then refuses to write credentials (+CME ERROR: 518)."""


@dataclass(frozen=True, slots=True)
class Functionality(Record):
    """Answer of +CFUN?; other vendors add <rst>, and modes that FunctionalMode does not name."""

    fun: int
    rst: int | None = None


@dataclass(frozen=True, slots=True)
class FunctionalModes(Record):
    """Answer of +CFUN=?."""

    funs: tuple[int, ...]
    rsts: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class SetFunctionalMode(OkCommand):
    """AT+CFUN=<fun>. Mode 4 while attached waits for the detach, seconds under bad radio."""

    fun: int

    name: ClassVar[str] = "+CFUN"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 60.0

    def parameters(self) -> tuple[int | str | None, ...]:
        """Return <fun>."""
        return (self.fun,)


@dataclass(frozen=True, slots=True)
class ReadFunctionalMode(Command[Functionality]):
    """AT+CFUN?."""

    name: ClassVar[str] = "+CFUN"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "+CFUN"

    def parse(self, lines: Sequence[str]) -> Functionality:
        """Return the mode."""
        fields = only_row(lines, self.name)
        answer = Functionality(fields.integer("fun", 0, 255), fields.optional_integer("rst", 0, 1))
        fields.end()
        return answer


@dataclass(frozen=True, slots=True)
class TestFunctionalMode(Command[FunctionalModes]):
    """AT+CFUN=?."""

    __test__: ClassVar[bool] = False  # pytest takes a class of this name for a test

    name: ClassVar[str] = "+CFUN"
    form: ClassVar[Form] = Form.TEST
    prefix: ClassVar[str] = "+CFUN"

    def parse(self, lines: Sequence[str]) -> FunctionalModes:
        """Return the modes that this modem has."""
        fields = only_row(lines, self.name)
        modes = fields.integers("fun")
        resets = None if fields.peek().absent else fields.integers("rst")
        fields.end()
        return FunctionalModes(modes, resets)


@dataclass(frozen=True, slots=True)
class ErrorFormat(Record):
    """0 plain ERROR, 1 numbers; 2, texts, is refused by an nRF91."""

    n: int


@dataclass(frozen=True, slots=True)
class SetErrorFormat(OkCommand):
    """AT+CMEE=<n>."""

    n: int = 1

    name: ClassVar[str] = "+CMEE"
    form: ClassVar[Form] = Form.SET

    def parameters(self) -> tuple[int | str | None, ...]:
        """Return <n>."""
        return (self.n,)


@dataclass(frozen=True, slots=True)
class ReadErrorFormat(Command[ErrorFormat]):
    """AT+CMEE?."""

    name: ClassVar[str] = "+CMEE"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "+CMEE"

    def parse(self, lines: Sequence[str]) -> ErrorFormat:
        """Return <n>."""
        fields = only_row(lines, self.name)
        answer = ErrorFormat(fields.integer("n", 0, 2))
        fields.end()
        return answer
