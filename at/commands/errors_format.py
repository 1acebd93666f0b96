"""How errors are reported: +CMEE, lost whenever the modem restarts (TS 27.007, 9.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from at.command import Command, Form, Order
from at.records import Record
from at.values import only_row

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class ErrorFormat(Record):
    """0 plain ERROR, 1 numbers; 2, texts, is refused by an nRF91."""

    n: int


@dataclass(frozen=True, slots=True)
class SetErrorFormat(Order):
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
