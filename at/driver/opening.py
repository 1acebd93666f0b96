"""Opening a modem: the transport for a port's name, then the handshake: terminator and dialect.

The handshake changes nothing on the modem. What a session sets (AT+CMEE=1) is set, repeated after a
restart and put back by `Modem`, in `at.driver.modem`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeGuard

from at.ports.usb import Listing, system_ports
from at.protocol.counts import counted
from at.protocol.dialect import Dialect, Terminator, recognised
from at.protocol.errors import CommandTimeout, ModemReset, NoAnswer, PortNotFound
from at.protocol.line import resynchronisation
from at.protocol.line.answer_or_notice import fields
from at.protocol.line.items import Answer
from at.transport.base import Transport, labelled

if TYPE_CHECKING:
    from at.driver.link import Link

ANSWER_TIMEOUT_S = 1.0
_ATTEMPTS = 4
# Written one by one if AT+CMEE? CR got no answer: the bytes, the terminator that an OK proves, and
# the one that an ERROR proves. A modem that waits for LF alone takes the CR for text: ERROR.
_OTHER_TERMINATORS = (
    (b"\n", Terminator.CRLF, Terminator.LF),
    (b"\x00", Terminator.NUL, Terminator.NUL),
)

# The answer to AT+CMEE? with OK as V.250, 5.7.1, has it after ATV0: a digit and CR.
_IN_NUMBERS = re.compile(rb"\+CMEE: ?[0-2][\r\n]+0\r")
# That answer, and the bytes that a bad line has put before it; more of them are a log's line.
_DAMAGED = re.compile(rb"^[^\r\n]{1,8}\+CMEE: ?[0-2]", re.MULTILINE)


def is_system_port(port: str) -> bool:
    """Return whether a port's name means a device of this system: "/dev/ttyACM0", "serial:1"."""
    return port.partition(":")[0] not in _ELSEWHERE


def transport_of(
    port: str, *, baud: int = 115200, rtscts: bool | None = None, listing: Listing = system_ports
) -> Transport:
    """Return the transport of a port's name. Raises PortNotFound where it names none.

    `rtscts`: hardware flow control; None means on where the kit is known to have it. `listing`: of
    the ports among which a kit is looked up.
    """
    if not port:
        raise PortNotFound("no port is named", hint="`cellagent ports` lists them")
    if not is_system_port(port):
        return _ELSEWHERE[port.partition(":")[0]](port)
    # Threads do everywhere; where it is installed, the event loop does it with less work.
    if sys.platform == "win32" or find_spec("serial_asyncio") is None:
        from at.transport.threaded import ThreadedSerialTransport

        return ThreadedSerialTransport(port, baud=baud, rtscts=rtscts, listing=listing)
    from at.transport.event_loop import SerialTransport

    return SerialTransport(port, baud=baud, rtscts=rtscts, listing=listing)


def _tcp(port: str) -> Transport:
    from at.transport.tcp import TcpTransport

    return TcpTransport(port)


def _virtual(port: str) -> Transport:
    from at.virtual.transport import VirtualTransport

    statefile = port.partition(":")[2] or None
    return VirtualTransport(statefile=statefile, registered=statefile is None)


def _replay(port: str) -> Transport:
    from at.transcripts.replay_transport import ReplayTransport

    # Lenient: commands get their recorded answers in any order.
    return ReplayTransport(port.partition(":")[2], strict=False)


# What stands before the colon of a port's name that means no device of this system.
_ELSEWHERE: dict[str, Callable[[str], Transport]] = {
    "tcp": _tcp,
    "virtual": _virtual,
    "replay": _replay,
}


async def handshake(
    link: Link, dialect: str, terminator: str, answer_timeout_s: float = ANSWER_TIMEOUT_S
) -> int | None:
    """Detect terminator and dialect; return the modem's CMEE setting, None if it has none.

    One question, AT+CMEE?, proves four things: that a modem answers, which terminator it needs,
    its dialect, and whether numbered errors are on. An answer may take `answer_timeout_s` seconds.
    Raises NoAnswer.
    """
    async with link.turns:
        if dialect != "auto":
            link.dialect = Dialect(dialect)
        if terminator != "auto":
            link.terminator = Terminator(terminator)
        link.listener = asking = _Handshake(link, answer_timeout_s, detects=dialect == "auto")
        try:
            answer = await asking.first_answer(find_terminator=terminator == "auto")
        finally:
            link.listener = None
    link.answers_no_probe = not answer.ok
    setting = next((fields(line) for line in answer.lines if line.startswith("+CMEE:")), [])
    return int(setting[0]) if setting and setting[0].isdecimal() else None


class _Handshake:
    def __init__(self, link: Link, answer_timeout_s: float, *, detects: bool) -> None:
        self._link = link
        self._answer_timeout_s = answer_timeout_s
        self._detects = detects  # the dialect
        self._received = bytearray()

    async def first_answer(self, *, find_terminator: bool) -> Answer:
        """Return the answer to AT+CMEE?, by a link that is in step from then on."""
        link, came = self._link, self._received
        answer = await self._ask()
        if answer is None and (is_garbage(came) or _IN_NUMBERS.search(came)):
            raise silence(link.transport.name, bytes(came))
        wrapper = link.dialect.traits.wrapper or recognised(came).traits.wrapper
        if answer is None and find_terminator and not wrapper:
            answer = await self._find_terminator()
        in_doubt = not _tells(answer)
        if self._detects:
            link.dialect = recognised(came)
            if link.dialect.traits.wrapper:
                answer = None  # to the bare question, it answered in words of its own
        if not _tells(answer):
            answer = await self._ask_again()
            shown = recognised(came)
            if self._detects and not (link.dialect.traits.wrapper or shown.traits.wrapper):
                link.dialect = shown  # what came before was no answer to know it by
        if self._detects and link.dialect is Dialect.SERIAL_MODEM:
            await self._tell_module()
        link.mark_trusted()
        if in_doubt and _tells(answer) and not link.dialect.traits.wrapper:
            # It may be the late answer to an earlier question: then another one follows.
            link.mark_suspect(owed="AT+CMEE?")
            await link.make_ready()
        return answer

    def data_received(self, data: bytes) -> None:
        self._received += data

    def connection_lost(self, reason: Exception | None) -> None:
        """Do nothing: whoever waits for an answer gets the loss."""

    async def _tell_module(self) -> None:
        """Ask for the model where the look of a reply leaves two: an nRF93M1 is one of them."""
        try:
            answer = await self._link.exchange("AT+CGMM", self._answer_timeout_s)
        except (CommandTimeout, ModemReset):
            return
        if any(line.upper().startswith("NRF93M1") for line in answer.lines):
            self._link.dialect = Dialect.NRF93M1

    async def _ask_again(self) -> Answer:
        """Ask again, each time assuming that an earlier client left a worse state behind."""
        link = self._link
        for attempt in range(_ATTEMPTS):
            for sequence in resynchronisation.abort_sequences(
                attempt, link.terminator, link.dialect, data_mode=False
            ):
                await self._complete(sequence, resynchronisation.ABORT_S)
            answer = await self._ask_in_doubt()
            if answer is not None:
                return answer
            if self._detects and b"\nat: command not found" in self._received:
                link.dialect = Dialect.MODEM_SHELL
        raise silence(link.transport.name, bytes(self._received))

    async def _ask(self) -> Answer | None:
        return await self._complete(None, self._answer_timeout_s)

    async def _ask_in_doubt(self) -> Answer | None:
        """Ask; where another answer comes, wait for more, and ask again once nothing comes.

        It may be a late refusal of an abort sequence: then the answer still follows.
        """
        answer = await self._ask()
        for _ in range(_ATTEMPTS):
            if answer is None or _tells(answer):
                return answer
            answer = await self._complete(b"", self._answer_timeout_s)
            if answer is None:
                return await self._ask()
        return None

    async def _complete(self, data: bytes | None, seconds: float) -> Answer | None:
        """Write the question, or `data` to complete it; return its answer, None if none came."""
        try:
            return await self._link.exchange("AT+CMEE?", seconds, data=data)
        except (CommandTimeout, ModemReset):
            return None

    async def _find_terminator(self) -> Answer | None:
        """Complete the unanswered question with the other terminators, one by one.

        The answer to that may be a late one: to the question, or to what an earlier client asked.
        Two more answers are not.
        """
        link = self._link
        for end, if_ok, if_error in _OTHER_TERMINATORS:
            answer = await self._complete(end, self._answer_timeout_s)
            if answer is not None:
                link.terminator = if_ok if answer.ok else if_error
                if await self._ask() is not None and (answer := await self._ask()) is not None:
                    return answer
                link.terminator = Terminator.CR
        link.write(b"\r")
        return None


def _tells(answer: Answer | None) -> TypeGuard[Answer]:
    """Return whether it is the answer to AT+CMEE?, not one that an earlier client was owed."""
    return answer is not None and any(line.startswith("+CMEE:") for line in answer.lines)


def silence(name: str, received: bytes) -> NoAnswer:
    """Return the error for a port where nothing answers AT; `received` is what came instead."""
    size = counted(len(received), "bytes")
    if not received:
        what = "nothing answers AT there, with any line end"
        hint = "`cellagent ports` tells which port of the kit answers"
    elif is_garbage(received):
        what = f"no AT answer, {size} of garbage"
        hint = "the speed may be wrong, or it is a trace port: `cellagent ports` tries others"
    elif _IN_NUMBERS.search(received):
        import shlex  # only a failure pays for it

        what = "the modem answers in numbers instead of OK and ERROR (ATV0)"
        way = "send it ATV1 with a terminal program"
        if name.startswith("/"):
            way = f"`printf 'ATV1\\r' > {shlex.quote(name)}` has it answer in words"
        hint = f"{way}, then try again"
    elif damaged := _DAMAGED.search(received):
        line = repr(damaged[0]).removeprefix("b")
        what = f"the modem answers, but its lines come damaged, as {line}"
        hint = "try another cable; or the speed is wrong: `cellagent ports` tries others"
    else:
        what = f"no AT answer, only {size} of other text"
        hint = "it may be the kit's console: `cellagent ports` tells which port answers"
    return NoAnswer(f"{labelled(name)} {what}", hint=hint, received=received)


def is_garbage(received: bytes | bytearray) -> bool:
    """Return whether bytes are no text: the speed is wrong, or it is a binary trace."""
    odd = sum(byte > 126 or (byte < 32 and byte not in b"\r\n\t\x1b\x08") for byte in received)
    return odd * 4 > len(received)
