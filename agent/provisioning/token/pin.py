"""The PIN of a token: where it came from, when it may be tried, what the token tells after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkcs11 import TokenFlag

from agent.errors import CredentialError

if TYPE_CHECKING:
    from agent.config.secrets import Secret


@dataclass(frozen=True, slots=True)
class Pin:
    """A PIN, and in a person's words where it came from; `typed` by someone who is there."""

    value: Secret
    source: str
    typed: bool = False


AskPin = Callable[[str], Pin]
"""From the token's label to its PIN; called once, and only once the token is there."""


def refuse_locked(label: str, flags: TokenFlag) -> None:
    """Raise CredentialError where the token takes no PIN any more."""
    if flags & TokenFlag.USER_PIN_LOCKED:
        raise CredentialError(
            f"the PIN of the token {label} is locked",
            hint="unlock it with its SO PIN or PUK, by its maker's program or pkcs11-tool",
        )


def refuse_last_try(label: str, flags: TokenFlag, pin: Pin) -> None:
    """Raise CredentialError where a stored PIN would be the last that the token takes."""
    if flags & TokenFlag.USER_PIN_FINAL_TRY and not pin.typed:
        raise CredentialError(
            f"the token {label} takes one more try, which the PIN {pin.source} is not given",
            hint="take that PIN away and type it on a terminal; a right one resets the count",
        )


def tries_left(flags: TokenFlag) -> str:
    """Return what a token tells of the tries left after a wrong PIN: it has no number for it."""
    if flags & TokenFlag.USER_PIN_FINAL_TRY:
        return "one try is left before it locks itself"
    return "it does not tell how many tries are left before it locks itself"
