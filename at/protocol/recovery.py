"""How a suspect link is made trustworthy again. Pure: it says what to send and judges answers.

After a time-out, a cancel or a restart nobody knows whether an answer is still on its way, whether
the modem holds half a command, an open quote, or takes everything for data. What it holds is first
ended as a syntax error: half a command that was only completed could be carried out, half a
credential stored, another slot deleted (AT%CMNG=3,1 of AT%CMNG=3,16842753). Then a probe is sent
whose answer can be no other command's: a read command whose name is not among those still owed an
answer. The modem answers in order: once the probe's answer is here, nothing older can follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from at.protocol.dialect import LEAVE_DATA_MODE
from at.protocol.ownership import command_name, line_name

if TYPE_CHECKING:
    from at.protocol.dialect import Dialect, Terminator
    from at.protocol.exchange import Answer

# Read commands without effect that every nRF91 firmware answers with a line of their own name.
PROBES = ("AT+CMEE?", "AT+CFUN?", "AT%XSYSTEMMODE?", "AT+CGDCONT?")
PROBE_S = 1.0
"""How long one probe is waited for: a modem that is idle answers within milliseconds."""
KICK_S = 0.1
"""How long the answer to a broken-off command may take, before the probe follows."""
ATTEMPTS = 10
POISON = b"~~~~"
"""What no command takes, in whatever place: not as a name, a number, nor behind a closed quote.

Four of them, so that a lost byte or two leave enough. It holds no A and no T: Serial Modem drops
it where no command has begun; a shell finds no command of that name, or an open quote before it.
"""


class OutstandingCommands:
    """The commands that may still be answered, oldest first."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def owe(self, command: str) -> None:
        """Note a command that was sent and not answered."""
        self._names.append(command_name(command))

    def owes(self, name: str) -> bool:
        """Tell whether an answer with lines of this name may still come."""
        return name in self._names

    def clear(self) -> None:
        """Forget all: the modem restarted, it answers nothing from before."""
        self._names.clear()

    def choose_probe(self) -> str:
        """Return the probe that settles most: one not owed, else the one owed last."""
        for probe in PROBES:
            if command_name(probe) not in self._names:
                return probe
        return max(PROBES, key=lambda probe: self._last(command_name(probe)))

    def settled_by(self, answer: Answer) -> bool:
        """Take an answer that came while a probe was waited for; tell whether nothing is owed."""
        name = next(map(line_name, answer.lines), "")
        if answer.ok and name in self._names:
            # It may be the answer to the first command of that name: no more is certain.
            del self._names[: self._names.index(name) + 1]
        return not self._names

    def _last(self, name: str) -> int:
        return len(self._names) - 1 - self._names[::-1].index(name)


def kicks(
    attempt: int, terminator: Terminator, dialect: Dialect, *, data_mode: bool
) -> list[bytes]:
    """Return what to write, KICK_S apart, before the probe of an attempt (from 0).

    The first attempt spoils and ends half a command. Each later one first closes an open quote;
    as a quote sent to an idle modem opens one, it does so in turns. The third ends data mode, and
    so does each where `data_mode` is known. An idle AT host has its modem refuse them (ERROR).
    """
    end = POISON + terminator.wire
    if dialect.traits.wrapper:
        return [end]
    ends_data = [LEAVE_DATA_MODE] if data_mode or attempt == 2 else []
    return [*ends_data, end if attempt == 0 else b'"' + end]
