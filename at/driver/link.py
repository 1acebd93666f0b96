"""The link to one modem: turns, time limits, what arrives. Cancel-safe at every await."""

import asyncio
from collections.abc import Awaitable, Callable

from at.driver.command_in_flight import CommandInFlight, Probe
from at.driver.link_state import IN_STEP, LOST, TRANSITIONS, LinkEvent, LinkState
from at.driver.resynchroniser import Deadline, Resynchroniser
from at.driver.time_limit import TimeLimit
from at.driver.turns import Turns
from at.protocol.dialect import Dialect, Terminator
from at.protocol.errors import CommandTimeout, LinkLost, ModemReset, NoAnswer
from at.protocol.line.answer_or_notice import Owner, command_name, looks_like_notice
from at.protocol.line.exchange import Exchange
from at.protocol.line.framing import Prompt
from at.protocol.line.items import Answer, Item, NoticeLine, Restart, Unknown, final_result
from at.protocol.line.resynchronisation import ABORT_S, LONGEST_S, PROBE_S
from at.transport.base import Receiver, Transport, labelled

_CTRL_Z = b"\x1a"
_RESTARTS_IN_A_ROW = 5
_MAY_BE_BUSY = "the modem may be busy: try again, else reset the kit"
_NOT_RECORDED = (
    "the recording has no answer to it: "
    "`cellagent modem record --update FILE --port PORT -- COMMAND` makes it anew on a kit"
)
_OUT_OF_STEP = (LinkState.SUSPECT, LinkState.IN_DATA_MODE, LinkState.RESTARTED)


class Link:
    """One command in flight over a transport; everything else that arrives goes to `on_item`."""

    def __init__(
        self,
        transport: Transport,
        on_item: Callable[[Item], None],
        on_lost: Callable[[LinkLost], None],
    ) -> None:
        self.transport = transport
        self._port = labelled(transport.name)  # as a message begins with it
        self.dialect = Dialect.AT_HOST
        self.terminator = Terminator.CR
        self.after_restart: Callable[[], Awaitable[None]] | None = None
        """Restores what a restart has undone; runs in the turn of the next command."""
        self.restarts = 0
        self.listener: Receiver | None = None
        """While not None, gets every byte that arrives as well, and the loss of the link."""
        self.answers_no_probe = False
        """Whether the modem has no probe command (ESP-AT): AT and then silence replace a probe."""
        self.on_idle_restart: Callable[[], None] = lambda: None
        """Called when the modem restarts while no command is in flight."""
        self.turns = Turns()
        """Whoever has one may use `exchange()`, `make_ready()` and `write()`."""
        self._on_item = on_item
        self._on_lost = on_lost
        self._state = LOST
        self._lost = LinkLost(
            f"{transport.name} is not open", hint="`await modem.open()` comes first"
        )
        self._is_new = True  # neither opened nor closed
        self._machine = Exchange()
        self._resynchroniser = Resynchroniser()
        self._in_flight = CommandInFlight(self._machine, on_item, self._doubt, self._await_other)
        self._time_limit = TimeLimit()
        self._loop: asyncio.AbstractEventLoop
        self._deadline: Deadline  # of getting in step; none otherwise

    async def open(self) -> None:
        """Open the transport. Raises PortError."""
        self._loop = asyncio.get_running_loop()
        self._deadline = Deadline()
        if self._is_new:
            self._state, self._is_new = IN_STEP, False
        await self.transport.open(self)

    async def close(self) -> None:
        """Close the transport. A caller that still waits gets LinkLost."""
        await self.transport.close()
        self.connection_lost(None)
        self._time_limit.cancel()
        self._is_new = False
        # Nobody is called back any more: so a closed modem is freed without the garbage collector.
        self._on_item = self._on_lost = _ignore
        self.after_restart, self.on_idle_restart = None, lambda: None
        self._in_flight = CommandInFlight(self._machine, _ignore, self.on_idle_restart, _ignore)

    # --- what the transport calls

    def data_received(self, data: bytes) -> None:
        """Route the bytes that arrived. A failure here ends the link: no caller is left waiting."""
        try:
            if self.listener is not None:
                self.listener.data_received(data)
            for item in self._machine.feed(data):
                self._route(item)
        except Exception as error:  # noqa: BLE001 - every caller must get it, whatever it is
            self._fail(LinkLost(f"{self._port} the reader failed: {error!r}"), error)

    def connection_lost(self, reason: Exception | None) -> None:
        """Raise LinkLost to every caller that waits, at once."""
        outcome = f"lost: {reason}" if reason else "closed"
        self._fail(LinkLost(f"{self.transport.name} was {outcome}"), reason)

    # --- what the modem calls

    async def ask(
        self,
        line: str,
        *,
        owner: Owner | None = None,
        timeout_s: float,
        payload: bytes | None = None,
    ) -> Answer:
        """Send a checked command line when its turn comes; return its answer.

        `timeout_s` counts from its turn and includes a resynchronisation: if the modem gives any
        final result meanwhile, it may take GRACE_S longer. `payload` is sent when the modem prompts
        for it. Raises CommandTimeout, ModemReset, LinkLost, NoAnswer.
        """
        async with self.turns:
            if self._state is not IN_STEP:
                timeout_s = await self.make_ready(timeout_s)
            return await self.exchange(line, timeout_s, owner, payload=payload)

    async def pass_through(self, borrower: Receiver, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work`, which may call `write`, as one turn; `borrower` gets the bytes that arrive.

        The link reads the same bytes, so that no notice is lost. Afterwards it is suspect, because
        the modem may hold half a command line.
        """
        async with self.turns:
            await self.make_ready()
            self.listener = borrower
            try:
                await work()
            finally:
                self.listener = None
                self.mark_suspect()

    async def make_ready(self, timeout_s: float = LONGEST_S) -> float:
        """Resynchronise a suspect link, then restore what a restart has undone.

        Returns how many of `timeout_s` are left. Raises NoAnswer where they do not suffice: the
        next call goes on where this one ended; LinkLost.
        """
        self._deadline = Deadline(timeout_s)
        try:
            await self._get_in_step()
            left_s = min(self._deadline.left_s(), timeout_s)
        finally:
            self._deadline = Deadline()
        if left_s < timeout_s / 2:
            raise NoAnswer(
                f"{self._port} the modem answered too late to get in step again within"
                f" {timeout_s:g} s, so the command was not sent",
                hint="send it again",
            )
        return left_s

    async def _get_in_step(self) -> None:
        """Resynchronise and restore.

        A kit reports one start several times, and each report begins this anew, a bounded number
        of times.
        """
        for _ in range(_RESTARTS_IN_A_ROW):
            self._raise_if_lost()
            if self._state in _OUT_OF_STEP:
                await self._resynchronise()
            if self._state is not LinkState.RESTORING:
                return
            try:
                if self.after_restart:
                    await self.after_restart()
            except (ModemReset, CommandTimeout):
                self._change(LinkEvent.RESTART)
            except BaseException:
                self._change(LinkEvent.RESTART)
                raise
            if self._state is LinkState.RESTORING:
                self._change(LinkEvent.RESTORED)
        raise NoAnswer(f"{self._port} the modem keeps restarting")

    async def exchange(
        self,
        line: str,
        timeout_s: float,
        owner: Owner | None = None,
        *,
        data: bytes | None = None,
        payload: bytes | None = None,
    ) -> Answer:
        """Send a command within a turn that the caller holds; return its answer.

        `data` is written instead of the command if the modem still holds most of it from an
        earlier attempt. Raises CommandTimeout, ModemReset, LinkLost.
        """
        self._raise_if_lost()
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._in_flight.begin(waiter, payload=payload)
        typed = self.dialect.typed(line)
        self._machine.start(line, owner, prompt=payload is not None, typed=typed)
        if self._state is not IN_STEP:
            timeout_s = min(timeout_s, self._deadline.left_s())
        self._time_limit.start(self._loop, timeout_s, lambda: self._expire(waiter, line, timeout_s))
        try:
            self.transport.write(typed.encode() + self.terminator.wire if data is None else data)
            return await waiter
        except BaseException:
            if self._machine.in_flight:
                self.mark_suspect(owed=line)
                self._in_flight.abandon()
            raise
        finally:
            self._time_limit.stop()
            self._in_flight.end()

    def write(self, data: bytes) -> None:
        """Write bytes within a turn that the caller holds. Raises LinkLost."""
        self._raise_if_lost()
        self.transport.write(data)

    def mark_suspect(self, *, owed: str | None = None) -> None:
        """Mark the link as suspect: it is resynchronised before the next command.

        The answer to `owed`, a command that was sent, may still come.
        """
        self._change(LinkEvent.DOUBT)
        self._resynchroniser.may_hold = True
        if owed is not None:
            self._resynchroniser.outstanding.add(owed)

    def mark_trusted(self) -> None:
        """Mark the link as in step: the caller has made sure that no older answer can follow."""
        if self._state in _OUT_OF_STEP:
            self._change(LinkEvent.PROBED)
        if self._state is LinkState.RESTORING:
            self._change(LinkEvent.RESTORED)
        self._resynchroniser.forget()

    def begin_data(self) -> None:
        """Note that the modem takes data from now on, unless it restarted."""
        if self._state in (IN_STEP, LinkState.SUSPECT):
            self._change(LinkEvent.DATA)

    def write_data(self, data: bytes) -> None:
        """Write data, as long as the modem takes them. Raises ModemReset, LinkLost."""
        self._raise_if_lost()
        if self._state is not LinkState.IN_DATA_MODE:
            raise ModemReset(
                f"{self._port} the modem restarted before it had all data", hint="send it again"
            )
        self.transport.write(data)

    def end_data(self) -> None:
        """Note that the modem took all data and takes commands again."""
        if self._state is LinkState.IN_DATA_MODE:
            self._change(LinkEvent.DATA_END)

    def _change(self, event: LinkEvent) -> None:
        if self._state is not LOST:
            self._state = TRANSITIONS[self._state, event]

    def _raise_if_lost(self) -> None:
        if self._state is LOST:
            raise self._lost

    # --- one exchange

    def _expire(self, waiter: asyncio.Future[Answer], line: str, timeout_s: float) -> None:
        if not waiter.done():
            name = command_name(line) or "AT"
            waiter.set_exception(
                CommandTimeout(
                    f"{self._port} no answer to {name} within {timeout_s:g} s",
                    hint=_NOT_RECORDED if self._port.startswith("replay:") else _MAY_BE_BUSY,
                )
            )

    def _route(self, item: Item) -> None:
        if type(item) is NoticeLine:
            late = self._state is not IN_STEP and self._resynchroniser.outstanding.includes(
                item.name
            )
            if late and not looks_like_notice(item.line):
                self._in_flight.pass_on(Unknown(item.line))  # a line of a late answer
            else:
                self._in_flight.pass_on(item)
            return
        if type(item) is Answer:
            self._hear()
            self._in_flight.take(item)
            return
        if isinstance(item, Prompt) and self._in_flight.payload is not None:
            payload, self._in_flight.payload = self._in_flight.payload, None
            self.transport.write(payload + _CTRL_Z)
        elif isinstance(item, Restart):
            self._restart(item)
        elif type(item) is Unknown and not self._machine.in_flight and final_result(item.text):
            self._hear()
            self._change(LinkEvent.DOUBT)  # one final result too many: another may follow
        self._in_flight.pass_on(item)

    def _doubt(self) -> None:
        self._change(LinkEvent.DOUBT)

    def _await_other(self, waiter: asyncio.Future[Answer]) -> None:
        """Wait anew: a modem that was busy when the probe came has lost it, or will come to it."""
        lost = self.dialect.traits.drops_input_while_busy
        seconds = ABORT_S if lost else PROBE_S
        self._limit_probe(waiter, self._deadline.share_s(seconds))

    def _limit_probe(self, waiter: asyncio.Future[Answer], seconds: float) -> None:
        self._time_limit.start(self._loop, seconds, lambda: self._expire(waiter, "AT", seconds))

    def _hear(self) -> None:
        """Note a final result: the modem answers, and what it held is ended."""
        self._resynchroniser.aborts = 0
        self._deadline.hear()

    def _restart(self, item: Restart) -> None:
        self.restarts += 1
        self._change(LinkEvent.RESTART)
        self._resynchroniser.outstanding.clear()
        if not self.turns.taken:
            self.on_idle_restart()
        self._in_flight.restart(
            ModemReset(
                f"{self._port} the modem restarted ({item.text})",
                hint="whether the command took effect is unknown: read it back",
            )
        )

    def _fail(self, error: LinkLost, cause: BaseException | None) -> None:
        if self._state is not LOST:
            self._change(LinkEvent.LOSS)
            error.__cause__ = cause
            away = "plug the kit in again" if cause else ""
            error.hint = getattr(cause, "hint", away)  # of a transport that knows better
            self._lost = error
        self._in_flight.fail(self._lost)
        self.turns.let_all_through()  # to be told of the loss
        if self.listener is not None:
            self.listener.connection_lost(self._lost)
        self._on_lost(self._lost)

    # --- resynchronisation

    async def _resynchronise(self) -> None:
        if not await self._resynchroniser.run(
            self._await_answer,
            self.dialect,
            self.terminator,
            self._deadline,
            data_mode=lambda: self._state is LinkState.IN_DATA_MODE,
            no_probe=self.answers_no_probe,
        ):
            raise NoAnswer(
                f"{self._port} the modem does not answer since a command was broken off;"
                f" it was given {min(self._deadline.timeout_s, LONGEST_S):.2g} s",
                hint="it may still be busy: the next command goes on trying; else reset the kit",
            )
        self._change(LinkEvent.PROBED)

    async def _await_answer(self, probe: Probe, data: bytes, seconds: float) -> Answer | None:
        """Write `data`; return the next answer that `probe` accepts, None after `seconds`."""
        self._raise_if_lost()
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._in_flight.begin(waiter, probe=probe)
        self._machine.start(probe.command, probe.owner)
        hurry = self._resynchroniser.hurries
        self._limit_probe(waiter, self._deadline.share_s(seconds, hurry=hurry))
        try:
            self.transport.write(data)
            return await waiter
        except (ModemReset, CommandTimeout):
            return None
        finally:
            self._time_limit.stop()
            self._in_flight.end()
            self._in_flight.disown()


def _ignore(_what: object) -> None:
    pass
