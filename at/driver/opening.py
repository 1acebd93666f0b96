"""From the name of a port to a transport, and from a transport to a modem that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from at.protocol import recovery
from at.protocol.dialect import Dialect, Terminator, recognised
from at.protocol.errors import CommandTimeout, ModemReset, NoAnswer, PortNotFound
from at.protocol.ownership import fields

if TYPE_CHECKING:
    from at.driver.link import Link
    from at.protocol.exchange import Answer
    from at.transport.base import Transport

PATIENCE_S = 1.0
_ATTEMPTS = 4
# What is written after AT+CMEE? CR found silence, and which terminator an answer then proves. A
# modem that waits for LF alone keeps the CR in its text and says ERROR.
_LATER_ENDS = ((b"\n", Terminator.CRLF, Terminator.LF), (b"\x00", Terminator.NUL, Terminator.NUL))


def transport_of(port: str, *, baud: int = 115200, rtscts: bool | None = None) -> Transport:
    """Return the transport of a port's name. Raises PortNotFound where it names none."""
    scheme, _, rest = port.partition(":")
    if scheme == "tcp":
        from at.transport.tcp import TcpTransport

        return TcpTransport(port)
    if scheme == "virtual":
        from at.virtual.transport import VirtualTransport

        return VirtualTransport(rest or None)
    if scheme == "replay":
        from at.transcripts.replay import ReplayTransport

        # Each question is answered as it was recorded, in whatever order it comes.
        return ReplayTransport(rest, strict=False)
    if not port:
        raise PortNotFound("no port is named", hint="`cellagent ports` lists them")
    from at.transport.serial import serial_transport

    return serial_transport(port, baud=baud, rtscts=rtscts)


async def establish(
    link: Link, dialect: str, terminator: str, patience_s: float = PATIENCE_S
) -> int | None:
    """Find out who answers, and how; return the CMEE setting found, None if it has none.

    The first command does four things: it tells whether anyone answers, which terminator it waits
    for, who it is, and whether numbered errors are on. Each answer is waited for `patience_s`.
    Raises NoAnswer.
    """

    async def work() -> Answer:
        return await _Opening(link, patience_s).first_answer(dialect, terminator)

    answer = await link.occupy(work)
    link.weak_probes = not answer.ok
    setting = next((fields(line) for line in answer.lines if line.startswith("+CMEE:")), [])
    return int(setting[0]) if setting and setting[0].isdigit() else None


class _Opening:
    def __init__(self, link: Link, patience_s: float) -> None:
        self._link = link
        self._patience_s = patience_s
        self._heard = bytearray()

    async def first_answer(self, dialect: str, terminator: str) -> Answer:
        link = self._link
        if dialect != "auto":
            link.dialect = Dialect(dialect)
        if terminator != "auto":
            link.terminator = Terminator(terminator)
        link.raw = self._heard
        try:
            answer = await self._ask()
            if answer is None and is_garbage(self._heard):
                raise silence(link.transport.name, bytes(self._heard))
            wrapper = link.dialect.traits.wrapper or recognised(self._heard).traits.wrapper
            if answer is None and terminator == "auto" and not wrapper:
                answer = await self._find_terminator()
            if dialect == "auto":
                link.dialect = recognised(self._heard)
                if link.dialect.traits.wrapper:
                    answer = None  # the question was not wrapped: what came were its own words
            return answer if answer is not None and answer.ok else await self._insist()
        finally:
            link.raw = None
            link.forget()

    async def _insist(self) -> Answer:
        """Ask again, each time assuming more of what an earlier client may have left behind."""
        link = self._link
        for attempt in range(_ATTEMPTS):
            for kick in recovery.kicks(attempt, link.terminator, link.dialect, data_mode=False):
                await self._complete(kick, recovery.KICK_S)
            answer = await self._ask()
            if answer is not None and not answer.ok:
                # The refusal of a kick, come late? Then the question's own answer follows.
                answer = await self._complete(b"", 3 * recovery.KICK_S) or answer
            if answer is not None:
                return answer
        raise silence(link.transport.name, bytes(self._heard))

    async def _ask(self) -> Answer | None:
        return await self._complete(None, self._patience_s)

    async def _complete(self, data: bytes | None, seconds: float) -> Answer | None:
        """Write the question, or what may be missing of it; return the answer, if one comes."""
        try:
            return await self._link.exchange("AT+CMEE?", seconds, data=data)
        except (CommandTimeout, ModemReset):
            return None

    async def _find_terminator(self) -> Answer | None:
        """Complete the command that got no answer with the other terminators, one by one."""
        link = self._link
        for end, if_ok, if_error in _LATER_ENDS:
            answer = await self._complete(end, self._patience_s)
            if answer is not None:
                link.terminator = if_ok if answer.ok else if_error
                return answer if answer.ok else await self._ask()
        link.write(b"\r")
        return None


def silence(name: str, heard: bytes) -> NoAnswer:
    """Return the error of a port where nothing answers AT, with what was heard instead."""
    if not heard:
        return NoAnswer(
            f"{name}: nothing answers AT there, with any line end",
            hint="`cellagent ports` tells which port of the kit answers",
        )
    if is_garbage(heard):
        return NoAnswer(
            f"{name}: no AT answer, {len(heard)} garbage bytes",
            hint="the speed may be wrong, or it is a trace port: `cellagent ports` tries others",
            heard=heard,
        )
    return NoAnswer(
        f"{name}: no AT answer, only {len(heard)} bytes of other text",
        hint="it may be the kit's console: `cellagent ports` tells which port answers",
        heard=heard,
    )


def is_garbage(heard: bytes | bytearray) -> bool:
    """Tell bytes of a wrong speed, or of a binary trace, from text."""
    odd = sum(byte > 126 or (byte < 32 and byte not in b"\r\n\t\x1b\x08") for byte in heard)
    return odd * 4 > len(heard)
