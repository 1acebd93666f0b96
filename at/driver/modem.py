"""`Modem`: typed commands, raw lines, notices and payloads; `open_modem` opens one by its port."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, TypeVar, overload

from at.driver.link import Link
from at.driver.opening import ANSWER_TIMEOUT_S, handshake, transport_of
from at.driver.own_position import OwnPosition
from at.driver.stream import Stream
from at.protocol import encoding
from at.protocol.dialect import Dialect, Terminator
from at.protocol.error_codes import rejection
from at.protocol.errors import (
    AtError,
    CommandRejected,
    CommandTimeout,
    LinkLost,
    NoAnswer,
    ParseError,
)
from at.protocol.line.answer_or_notice import Owner, command_name
from at.protocol.line.items import Answer, Item, NoticeLine, Restart
from at.protocol.notices import BoundedQueue, Dispatcher, Notice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from at.protocol.command import Command
    from at.transport.base import Receiver, Transport


T = TypeVar("T")
N = TypeVar("N", bound=Notice)
DEFAULT_TIMEOUT_S = 5.0
_CLOSE_S = 3.0
_BACKLOG = 256
_PIECE_BYTES = 4096
_FILLER = b"\r"
"""What ends the transfer of an announced length: +++ is no more than data to it."""


class Modem:
    """One modem over one transport. One command is in flight; the others wait their turn.

    Made by `open_modem`, or by hand: `Modem(transport)`, `await modem.open()`.
    """

    def __init__(
        self, transport: Transport, *, dialect: str = "auto", terminator: str = "auto"
    ) -> None:
        self._link = Link(transport, self._sort, self._on_lost)
        self._link.after_restart = self._restore_settings
        self._link.on_idle_restart = self._restore_when_idle
        self._requested = (dialect, terminator)
        self._dispatcher = Dispatcher()
        self._notices: list[Stream[Notice]] = []
        self._consoles: list[Stream[Item]] = []
        self._subscriptions: dict[str, str] = {}
        self.own_position = OwnPosition()
        """Whether the modem measures cells for a position of its own."""
        self._cmee_before: int | None = None
        self._restoring: asyncio.Task[None] | None = None
        self.on_restart: Callable[[str], None] = lambda _line: None
        """Called with each line that reports a start of the modem; one start has several."""
        self._lost: LinkLost | None = None
        self._unread: BoundedQueue[Item] = BoundedQueue(_BACKLOG)

    # --- opening and closing

    async def open(
        self, *, answer_timeout_s: float = ANSWER_TIMEOUT_S, owed_bytes: int = 0
    ) -> None:
        """Open the port, detect terminator and dialect (`opening`), switch numbered errors on here.

        A terminator or dialect is given up after `answer_timeout_s` without an answer. A modem
        that stays silent may wait for the rest of `owed_bytes`, which an earlier client announced:
        it gets them. Raises PortError, NoAnswer.
        """
        await self._link.open()
        try:
            try:
                self._cmee_before = await handshake(self._link, *self._requested, answer_timeout_s)
            except NoAnswer as silent:
                if silent.received or not owed_bytes:
                    raise
                self._link.write(_FILLER * owed_bytes)
                await self._link.transport.drain()
                self._cmee_before = await handshake(self._link, *self._requested, answer_timeout_s)
            if self._cmee_before == 0:
                await self._link.ask("AT+CMEE=1", timeout_s=DEFAULT_TIMEOUT_S)
        except BaseException:
            await self.close()  # it may have taken what was sent
            raise

    async def close(self) -> None:
        """Restore CMEE and close the port, within a bounded time. Closing twice is harmless."""
        if self._restoring is not None:
            self._restoring.cancel()
        try:
            if self._cmee_before == 0 and self._lost is None:
                self._cmee_before = None
                restored = asyncio.ensure_future(self._restore_cmee())
                try:
                    await asyncio.shield(restored)
                finally:
                    await restored  # also where a cancel comes only now
        finally:
            await self._link.close()

    async def _restore_cmee(self) -> None:
        with contextlib.suppress(AtError, TimeoutError):  # the port closes all the same
            async with asyncio.timeout(_CLOSE_S):
                await self._link.ask("AT+CMEE=0", timeout_s=_CLOSE_S)

    @property
    def name(self) -> str:
        """The port, as a person would write it."""
        return self._link.transport.name

    @property
    def dialect(self) -> Dialect:
        """The firmware that takes the command lines."""
        return self._link.dialect

    @property
    def terminator(self) -> Terminator:
        """The terminator of a command line."""
        return self._link.terminator

    @property
    def restarts(self) -> int:
        """How often the modem restarted since the port was opened."""
        return self._link.restarts

    # --- commands

    async def send(self, command: Command[T], *, timeout_s: float | None = None) -> T:
        """Send a typed command and return the value of its answer.

        Raises CommandRejected if the modem refuses it, ParseError if the answer breaks its
        grammar, UnsafeArgument before anything is sent; CommandTimeout, ModemReset, LinkLost,
        NoAnswer.
        """
        line = self._checked(command.encode(), multiline=command.multiline)
        begun = self.own_position.begin_with(line, self.notices)
        answer = await self._link.ask(
            line,
            owner=Owner(
                command.prefix,
                command.owns,
                bare=command.wraps or not command.prefix,
                needs_line=lambda: _needs_line(command),
            ),
            timeout_s=command.timeout_s if timeout_s is None else timeout_s,
        )
        if answer.final != "OK":
            if begun:
                self.own_position.end()
            raise rejection(line, answer)
        try:
            return command.parse(answer.lines)
        except ParseError as broken:
            if not answer.lines:
                self._link.mark_suspect()  # it may be another command's OK, sent twice
            broken.hint = broken.hint or _way_out(line)
            broken.answer = tuple(answer.lines)
            raise

    async def try_send(self, command: Command[T], *, timeout_s: float | None = None) -> T | None:
        """Send a command that not every modem answers; None where it is refused, or not understood.

        Raises as `send`, except CommandRejected and ParseError.
        """
        try:
            return await self.send(command, timeout_s=timeout_s)
        except (CommandRejected, ParseError):
            return None

    async def execute(
        self,
        line: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        multiline: bool = False,
        payload: bytes | None = None,
    ) -> Answer:
        """Send a command line unchanged and return its answer, whether OK or not.

        `timeout_s` counts from its turn and is a deadline: where an earlier command was broken off,
        getting in step again is part of it, and NoAnswer says that it did not suffice (a modem that
        is slow, not mute, may take `at.driver.resynchroniser.GRACE_S` more). `multiline` permits CR
        and LF within its quotes; `payload` is the text for a command that prompts for one. Raises
        as `send`, except CommandRejected and ParseError.
        """
        line = self._checked(line, multiline=multiline)
        begun = self.own_position.begin_with(line, self.notices)
        answer = await self._link.ask(line, timeout_s=timeout_s, payload=payload)
        if begun and not answer.ok:
            self.own_position.end()
        return answer

    async def subscribe(self, line: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Send a subscription ("AT+CEREG=5"), and repeat it after each restart of the modem.

        A later subscription of the same name replaces it. Raises CommandRejected.
        """
        answer = await self.execute(line, timeout_s=timeout_s)
        if not answer.ok:
            raise rejection(line, answer)
        self._subscriptions[command_name(line)] = line

    async def transfer(self, command: str, payload: bytes, *, timeout_s: float = 60.0) -> str:
        """Send a command that answers OK and then takes raw bytes (#XDFUWRITE); send the bytes.

        Returns the line, #XDATAMODE, that ends the transfer. If it is interrupted, the link leaves
        data mode before anything else is sent. Raises CommandTimeout after `timeout_s`, ModemReset,
        CommandRejected.
        """
        link, line = self._link, self._checked(command)
        async with link.turns:
            left_s = await link.make_ready(timeout_s)
            try:
                answer = await link.exchange(line, left_s)
                if not answer.ok:
                    raise rejection(line, answer)
                link.begin_data()
                # From here on: what came before tells of an earlier transfer.
                with self.notices("#XDATAMODE") as ends:
                    async with asyncio.timeout(timeout_s):
                        for start in range(0, len(payload), _PIECE_BYTES):
                            link.write_data(payload[start : start + _PIECE_BYTES])
                            await link.transport.drain()
                        last = (await anext(ends)).line
            except (asyncio.CancelledError, TimeoutError, CommandTimeout) as error:
                # It may have announced the data, or have lost some: then it waits for them.
                with contextlib.suppress(LinkLost):
                    link.write(_FILLER * len(payload))
                if not isinstance(error, TimeoutError):
                    raise
                name = command_name(line)
                what = f"{name}: no end of the transfer in {timeout_s:g} s"
                raise CommandTimeout(what) from error
            link.end_data()
        return last

    async def pass_through(
        self,
        borrower: Receiver,
        work: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]],
    ) -> None:
        """Give the raw line to `borrower` while `work(write)` runs; commands wait meanwhile.

        `write` returns once the line has room again. `borrower` gets the bytes that arrive, and the
        loss of the link. Raises LinkLost, NoAnswer.
        """

        async def write(data: bytes) -> None:
            self._link.write(data)
            await self._link.transport.drain()

        await self._link.pass_through(borrower, lambda: work(write))
        await self._make_ready()

    async def type_line(self, line: str) -> None:
        """Write any line, such as a command of the kit's shell, in a turn of its own.

        The answer comes as console lines (`lines`). Raises LinkLost, NoAnswer.
        """
        data = line.encode() + self.terminator.wire
        async with self._link.turns:
            await self._link.make_ready()
            self._link.write(data)
            self._link.mark_suspect()  # the effect of the line is unknown
        await self._make_ready()

    # --- unsolicited lines

    @overload
    def notices(self, first: type[N], /, *wanted: type[N], limit: int = 256) -> Stream[N]: ...

    @overload
    def notices(self, *wanted: type[Notice] | str, limit: int = 256) -> Stream[Notice]: ...

    def notices(self, *wanted: type[Notice] | str, limit: int = 256) -> Stream[N] | Stream[Notice]:
        """Subscribe to notices by type or name ("+CEREG"); none named means all.

        The subscription ends with its block::

            with modem.notices(RegistrationNotice) as notices:
                async for notice in notices: ...
        """

        def leave(stream: Stream[Notice]) -> None:
            self._dispatcher.remove(stream.queue)
            self._notices.remove(stream)

        stream: Stream[Notice] = Stream(limit, leave)
        self._dispatcher.add(stream.queue, *wanted)
        self._notices.append(stream)
        if self._lost is not None:
            stream.end(self._lost)
        return stream

    def lines(self, limit: int = 4096) -> Stream[Item]:
        """Subscribe to the console: log lines, unknown lines, echoes, restarts.

        The first items are those received before the first subscription, such as a boot banner;
        items that did not fit into that backlog count as dropped.
        """
        stream: Stream[Item] = Stream(limit, self._consoles.remove)
        while self._unread:
            stream.queue.put(self._unread.get())
        stream.queue.dropped += self._unread.dropped
        self._unread.dropped = 0
        self._consoles.append(stream)
        if self._lost is not None:
            stream.end(self._lost)
        return stream

    # --- internals

    def _checked(self, line: str, *, multiline: bool = False) -> str:
        return encoding.check_line(
            line, multiline=multiline, longest=self.dialect.traits.longest_command
        )

    def _sort(self, item: Item) -> None:
        if type(item) is NoticeLine:
            self._dispatcher.dispatch(item.name, item.line, item.context)
            return
        if type(item) is Restart:
            self.on_restart(item.text)
        for stream in self._consoles:
            stream.queue.put(item)
        if not self._consoles:
            self._unread.put(item)

    def _on_lost(self, error: LinkLost) -> None:
        self._lost = error
        for notices in self._notices:
            notices.end(error)
        for console in self._consoles:
            console.end(error)

    def _restore_when_idle(self) -> None:
        """Repeat the subscriptions after a restart, even if no command follows."""
        if self._subscriptions and (self._restoring is None or self._restoring.done()):
            self._restoring = asyncio.get_running_loop().create_task(self._make_ready())

    async def _make_ready(self) -> None:
        with contextlib.suppress(AtError):  # the next command tries again, and raises
            await self._link.ask("AT", timeout_s=DEFAULT_TIMEOUT_S)

    async def _restore_settings(self) -> None:
        """Restore what a restart has undone. Runs in the turn of the next command."""
        lines = list(self._subscriptions.values())
        if self._cmee_before is not None:
            lines.insert(0, "AT+CMEE=1")
        for line in lines:
            await self._link.exchange(line, DEFAULT_TIMEOUT_S)


@contextlib.asynccontextmanager
async def open_modem(
    port: str,
    *,
    baud: int = 115200,
    dialect: str = "auto",
    terminator: str = "auto",
    rtscts: bool | None = None,
) -> AsyncIterator[Modem]:
    """Open the modem at `port` as a context manager. Raises PortError, NoAnswer.

    `port`: "/dev/ttyACM0", "COM3", "serial:NUMBER", "tcp://HOST:PORT", "virtual:[STATEFILE]" or
    "replay:FILE". `dialect`: a `DialectName`. `terminator`: a `TerminatorName`. `rtscts`:
    hardware flow control; None: as the kit has it.
    """
    transport = transport_of(port, baud=baud, rtscts=rtscts)
    modem = Modem(transport, dialect=dialect, terminator=terminator)
    await modem.open()
    try:
        yield modem
    finally:
        await modem.close()


def _way_out(line: str) -> str:
    again = "ask again: the line may have been damaged, or a print stood in it"
    return again if '"' in line else f"{again}; `cellagent modem at '{line}'` shows what comes"


def _needs_line(command: Command[T]) -> bool:
    """Return whether an answer of OK alone is none for this command."""
    try:
        command.parse(())
    except ParseError:
        return True
    return False
