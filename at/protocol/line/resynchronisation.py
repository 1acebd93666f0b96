"""Resynchronisation of a suspect link: what to send, and what an answer proves. Pure.

After a time-out, a cancel or a restart nobody knows whether an answer is still on its way, or
whether the modem holds half a command, an open quote, or is in data mode. An abort sequence first
makes a syntax error of what it holds: half a command that was only completed could be carried out,
half a credential stored, another slot deleted (AT%CMNG=3,1 of AT%CMNG=3,16842753). Then a probe is
sent, a read command whose name no outstanding command has, so that its answer cannot be another's.
The modem answers in order: once the probe's answer is here, nothing older can follow.
"""

from at.protocol.dialect import LEAVE_DATA_MODE, Dialect, Terminator
from at.protocol.line.answer_or_notice import command_name, line_name
from at.protocol.line.items import Answer

# Read commands without effect that every nRF91 firmware answers with a line of their own name.
PROBES = ("AT+CMEE?", "AT+CFUN?", "AT%XSYSTEMMODE?", "AT+CGDCONT?")
_LEAVE_PROMPT = b"\x1b"  # TS 27.005, 3.5.1: nothing is sent of what was typed
PROBE_S = 1.0
"""How long the answer to a probe may take; an idle modem answers within milliseconds."""
ABORT_S = 0.1
"""How long the answer to an abort sequence may take, before the next one or the probe."""
ATTEMPTS = 10
WAYS_OUT = 4
"""After how many abort sequences a modem that takes lines has left whatever it was in."""
LONGEST_S = 12.0
"""How long a resynchronisation may take where no command says how long it may."""
POISON = b"~~~~"
"""Invalid anywhere in a command: as a name, as a number, behind a closed quote.

Four bytes, so that one or two lost ones leave enough. None is an A or a T, so Serial Modem drops
them where no command has begun; a shell finds no command of that name, or an open quote before it.
"""


class OutstandingCommands:
    """The commands that were sent and may still be answered, oldest first."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def add(self, command: str) -> None:
        """Add a command that was sent and not answered."""
        self._names.append(command_name(command))

    def includes(self, name: str) -> bool:
        """Return whether an answer whose lines have this name may still come."""
        return name in self._names

    def clear(self) -> None:
        """Remove all: after a restart the modem answers nothing from before."""
        self._names.clear()

    def choose_probe(self) -> str:
        """Return a probe that is not outstanding, else the one that was sent last."""
        probes = {command_name(probe): probe for probe in PROBES}
        free = (probe for name, probe in probes.items() if name not in self._names)
        sent = (probes[name] for name in reversed(self._names) if name in probes)
        return next(free, None) or next(sent)

    def settled_by(self, answer: Answer) -> bool:
        """Remove what an answer settles. Return whether no command is outstanding any more."""
        name = next(map(line_name, answer.lines), "")
        if answer.ok and name in self._names:
            # It may be the answer to the first command of that name: no more is certain.
            del self._names[: self._names.index(name) + 1]
        return not self._names


def abort_sequences(
    attempt: int, terminator: Terminator, dialect: Dialect, *, data_mode: bool
) -> list[bytes]:
    """Return what to write, ABORT_S apart, before the probe of an attempt (from 0).

    The first attempt makes half a command invalid and ends it. Each later one first closes an open
    quote; in an idle modem it opens one, which the next attempt closes. The third leaves data mode
    and a prompt for text; each leaves data mode if `data_mode` is set. An idle AT host answers
    ERROR to them.
    """
    end = POISON + terminator.wire
    if dialect.traits.wrapper:
        return [end]
    ends_data = [LEAVE_DATA_MODE] if data_mode or attempt == 2 else []
    ends_prompt = _LEAVE_PROMPT if attempt == 2 else b""
    return [*ends_data, end if attempt == 0 else ends_prompt + b'"' + end]
