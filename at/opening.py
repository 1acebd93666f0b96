"""From the name of a port to a transport, and from a transport to a modem that answers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from at import resync
from at.dialect import Dialect, Terminator, recognised
from at.errors import AtError, CommandTimeout, ModemReset, NoAnswer, PortNotFound
from at.ownership import fields

if TYPE_CHECKING:
    from at.exchange import Answer
    from at.link import Link
    from at.transport.base import Transport

_FIRST_S = 1.0
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
        virtual: Transport = import_module("at.virtual.transport").VirtualTransport(rest or None)
        return virtual
    if scheme == "replay":
        replay: Transport = import_module("at.transport.replay").ReplayTransport(rest)
        return replay
    if not port:
        raise PortNotFound("no port is named", hint="`cellagent ports` lists them")
    from at.transport.serial import serial_transport

    return serial_transport(port, baud=baud, rtscts=rtscts)


async def establish(link: Link, dialect: str, terminator: str) -> int | None:
    """Find out who answers, and how; return the CMEE setting found, None if it has none.

    The first command does four things: it tells whether anyone answers, which terminator it waits
    for, who it is, and whether numbered errors are on. Raises NoAnswer.
    """

    async def work() -> Answer:
        return await _first_answer(link, dialect, terminator)

    answer = await link.occupy(work)
    setting = next((fields(line) for line in answer.lines if line.startswith("+CMEE:")), [])
    return int(setting[0]) if setting and setting[0].isdigit() else None


async def _first_answer(link: Link, dialect: str, terminator: str) -> Answer:
    if dialect != "auto":
        link.dialect = Dialect(dialect)
    if terminator != "auto":
        link.terminator = Terminator(terminator)
    link.raw = bytearray()
    try:
        answer = await _ask(link)
        if answer is None and terminator == "auto" and link.dialect is not Dialect.SHELL:
            answer = await _find_terminator(link)
        if dialect == "auto":
            link.dialect = recognised(bytes(link.raw))
            if link.dialect is Dialect.SHELL:
                link.terminator = Terminator.LF if terminator == "lf" else Terminator.CR
                answer = None
        for attempt in range(4):
            if answer is not None and answer.ok:
                return answer
            if answer is not None and attempt:
                return answer
            for kick in resync.kicks(attempt, link.terminator, link.dialect, data_mode=False):
                link.write(kick)
                await _listen(link, resync.KICK_S)
            answer = await _ask(link)
        if answer is not None:
            return answer
        raise silence(link.transport.name, bytes(link.raw))
    finally:
        link.raw = None
        link.forget()


async def _ask(link: Link) -> Answer | None:
    try:
        return await link.exchange("AT+CMEE?", _FIRST_S)
    except (CommandTimeout, ModemReset):
        return None


async def _listen(link: Link, seconds: float) -> Answer | None:
    try:
        return await link.await_final("AT+CMEE?", seconds)
    except (CommandTimeout, ModemReset):
        return None


async def _find_terminator(link: Link) -> Answer | None:
    """Complete the command that got no answer with the other terminators, one by one."""
    for end, if_ok, if_error in _LATER_ENDS:
        link.write(end)
        answer = await _listen(link, _FIRST_S)
        if answer is not None:
            link.terminator = if_ok if answer.ok else if_error
            return answer if answer.ok else await _ask(link)
    link.write(b"\r")
    return None


def silence(name: str, heard: bytes) -> AtError:
    """Return the error of a port where nothing answers AT, with what was heard instead."""
    if not heard:
        return NoAnswer(
            f"{name}: nothing answers AT there",
            hint="`cellagent ports` tells which port of the kit answers",
        )
    garbage = sum(byte > 126 or (byte < 32 and byte not in b"\r\n\t\x1b") for byte in heard)
    if garbage * 4 > len(heard):
        return NoAnswer(
            f"{name}: no AT answer, {len(heard)} bytes of garbage",
            hint="the speed may be wrong (another --baud), or it is a trace port",
        )
    return NoAnswer(
        f"{name}: no AT answer, only {len(heard)} bytes of other text",
        hint="it may be the kit's console: `cellagent ports` tells which port answers",
    )
