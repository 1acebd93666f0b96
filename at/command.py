"""What a typed command is: how it is written, how its answer is read, how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """One command of the modem. A subclass holds its parameters as fields.

    `timeout_s` is the time within which the final result must come, in seconds.
    `prefix` is what its body lines start with ("+CEREG"), "" where they carry none: it settles
    which lines are the answer and which are notices of the same name (`owns`).
    `multiline` permits CR and LF within the quotes of its line, for PEM texts.
    """

    timeout_s: ClassVar[float] = 5.0
    prefix: ClassVar[str] = ""
    multiline: ClassVar[bool] = False

    def encode(self) -> str:
        """Return the command line without its terminator. Raises UnsafeArgument."""
        raise NotImplementedError

    def parse(self, lines: Sequence[str]) -> T:
        """Return the value of the body lines of an answer that ended in OK. Raises ParseError."""
        raise NotImplementedError

    def owns(self, line: str) -> bool:
        """Tell whether a body line that starts with `prefix` is the reply, not a notice.

        Overridden where a notice has the reply's own prefix (+CEREG, +CSCON, ...).
        """
        return line.startswith(self.prefix)
