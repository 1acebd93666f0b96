"""Commands that must be asked for by name: %XSUDO and %XFACTORYRESET.

A reset may take credentials with it, and nothing promises that they survive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from at.protocol.command import Command, Form, Order, Parameters
from at.protocol.encoding import quoted
from at.protocol.errors import UnsafeArgument

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FactoryReset(Order):
    """AT%XFACTORYRESET=<0 all|1 user data>, only in functional mode 0 or 4.

    `erase_settings` must be True: a caller cannot make this command by accident.
    """

    erase_settings: bool
    kind: int = 1

    name: ClassVar[str] = "%XFACTORYRESET"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 60.0

    def parameters(self) -> Parameters:
        """Return the kind."""
        if self.erase_settings is not True:
            raise UnsafeArgument(
                "a factory reset erases the modem's settings, and credentials may go with them",
                hint="say erase_settings=True if that is meant",
            )
        if self.kind not in {0, 1}:
            raise UnsafeArgument(f"a factory reset of kind {self.kind} does not exist")
        return (self.kind,)


@dataclass(frozen=True, slots=True)
class Authenticated(Command[tuple[str, ...]]):
    """AT%XSUDO: a signed command. `command` goes without its "AT"; the signature is base64."""

    signature: str
    command: str
    sec_tag: int | None = None

    name: ClassVar[str] = "%XSUDO"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 30.0

    def encode(self) -> str:
        """Return the signed command."""
        if not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", self.signature, re.ASCII):
            raise UnsafeArgument("the signature of a signed command is not base64")
        if not re.match(r"[+%][A-Z]", self.command) or ";" in self.command:
            raise UnsafeArgument('the signed command must be one command without its "AT"')
        tag = "" if self.sec_tag is None else f",{self.sec_tag}"
        sign = quoted(self.signature)
        return f"AT%XSUDO={len(self.signature)},{sign}{tag};{self.command}"

    def parse(self, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the lines of the inner command's answer."""
        return tuple(lines)
