"""What other processes may do with a kit that the agent holds: speak to its modem, type at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from agent.daemon.kit_link import TURN_S, KitAway
from at.transport.base import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.daemon.console import KitConsole
    from agent.daemon.kit_link import KitLink

_TYPED_S = 60.0  # for the answer to a command that a person typed


class Borrower(Receiver, Protocol):
    """Another process that wants to speak to the modem."""

    async def say(self, answer: dict[str, Any]) -> None:
        """Tell it that its turn has come."""

    async def write_through(self, write: Callable[[bytes], None]) -> None:
        """Pass on what it writes, until it closes."""


class Lending:
    """The kit in the hands of others, in turns."""

    def __init__(self, name: str, link: KitLink, console: KitConsole) -> None:
        self._name = name
        self._link = link
        self._console = console
        self.is_lent = False
        """Whether what the modem says now is for a borrower."""

    async def lend(self, borrower: Borrower, who: str) -> None:
        """Let another process speak to the modem until it closes. Raises KitAway, KitBusy."""
        async with self._link.undisturbed(f"lent to {who}", patience_s=TURN_S):
            modem = self._link.available()
            await borrower.say(
                {
                    "ok": True,
                    "kit": self._name,
                    "dialect": modem.dialect.value,
                    "terminator": modem.terminator.value,
                }
            )
            self.is_lent = True
            try:
                await modem.lend(borrower, borrower.write_through)
            finally:
                self.is_lent = False

    async def type_line(self, line: str) -> list[str]:
        """Write a line to the console, as a person would; return what a modem answers to it.

        Raises KitAway, KitBusy, AtError.
        """
        if self._console.port:
            if self._console.write is None:
                raise KitAway("the kit's console is not open", hint="`cellagent status` says why")
            self._console.write(line.encode() + b"\r")
            return []
        async with self._link.undisturbed("a line is typed", patience_s=TURN_S):
            modem = self._link.available()
            if line[:2].upper() != "AT":
                await modem.type_line(line)  # to a shell: what it says comes as console lines
                return []
            answer = await modem.execute(line, timeout_s=_TYPED_S)
            return [*answer.lines, answer.final or ""]
