"""A value that does not show itself."""

from __future__ import annotations

import re
from typing import NoReturn

from agent.errors import ConfigError
from agent.redact import HIDDEN, SHORTEST, hide

# What may stand in an HTTP header: visible ASCII. A line break would start another header.
_ONE_LINE = re.compile(r"[\x21-\x7e]+")


class Secret:
    """A secret text. Its repr, str and format hide it, it cannot be pickled, logs redact it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        hide(value)

    @classmethod
    def one_line(cls, value: str, what: str) -> Secret:
        """Return a secret that fits a header. Raises ConfigError, naming `what`, not the value."""
        if not _ONE_LINE.fullmatch(value):
            raise ConfigError(
                f"{what} holds a space, a line break or a character that is not ASCII",
                hint="it may have been cut or joined when it was copied: copy it again",
            )
        if len(value) < SHORTEST:
            raise ConfigError(f"{what} is shorter than {SHORTEST} characters")
        return cls(value)

    def reveal(self) -> str:
        """Return the value, for the place that sends or signs with it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")
