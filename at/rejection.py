"""An answer that is not OK, as the error that its command raises. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from at.error_codes import describe
from at.errors import CommandRejected
from at.ownership import command_name

if TYPE_CHECKING:
    from at.exchange import Answer


def rejection(line: str, answer: Answer) -> CommandRejected:
    """Return the error of an answer that is not OK, with its meaning and the way out."""
    final, name = answer.final or "", command_name(line) or "AT"
    message, hint = describe(final, answer.code, answer.text, command=name)
    return CommandRejected(
        f"{name}: {message}", hint=hint, final=final, code=answer.code, text=answer.text
    )
