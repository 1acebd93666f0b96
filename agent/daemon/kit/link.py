"""The link to one kit: its ports, opened and opened again when lost; exclusive use in turns.

One user at a time has exclusive use of the kit. A user that opens ports of the kit itself has the
agent release them, too: an installer one port, a hold all of them. A lease gives another program
the modem, while the agent keeps the port open.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Protocol, TypeVar

from agent.config.profile import KitSettings
from agent.daemon.control.protocol import LeaseAnswer
from agent.daemon.kit.held_port import HeldPort, PortState
from agent.daemon.snapshot import ConcernStatus, LinkStatus, Phase
from agent.daemon.status import THE_LINK, AgentEventKind, Concern
from agent.errors import ResourceUnavailable, Unavailable
from agent.tasks import Changing, first_of, wait_for_event
from at.driver.modem import Modem
from at.driver.opening import transport_of
from at.imei import read_imei
from at.protocol.errors import AtError, LinkLost, ModemReset
from at.protocol.state_machine import Transitions
from at.transcripts.recorder import Recorder, TappedTransport
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import TranscriptStep
from at.transport.base import Receiver

EXCLUSIVE_WAIT_S = 90.0
"""Seconds that another program waits for exclusive use: a scan of cells takes up to a minute."""
OPENING_S = 30.0
"""Seconds to wait for a link that is being opened: its baud rate may have to be found."""


_SET_MODE = re.compile(rb"\+CFUN *= *(\d{1,3})[ ,;\r\n]", re.IGNORECASE)
_ASK_POSITION = re.compile(rb"#XNRFCLOUDPOS *= *[0-9]", re.IGNORECASE)
_TAIL = 64
"""So many bytes of what a lease wrote are kept: a command may come in pieces."""
T = TypeVar("T")


class KitBusy(ResourceUnavailable, Unavailable):
    """The kit is in the middle of something that must not be broken off."""

    kind = "kit-busy"


class KitAway(ResourceUnavailable, Unavailable):
    """The running agent has no link to the kit itself."""

    kind = "kit-away"


class KitLinkState(Enum):
    """Whose the modem of a kit is."""

    AWAY = auto()
    """Nobody's: the kit is not there, or its port is released."""
    OPENING = auto()
    """Being opened, and contacted for the first time."""
    UP = auto()
    """The agent's."""
    LENT = auto()
    """Another program's, through the agent, which keeps the port open."""
    CLOSING = auto()
    """Being left as it was found, if it is still there."""


class KitLinkEvent(Enum):
    """What happens to the link to a kit."""

    OPEN = auto()
    READY = auto()
    """The first contact was made."""
    LEND = auto()
    GIVE_BACK = auto()
    LEAVE = auto()
    """The kit went away, or its port has to be released."""
    CLOSE = auto()
    """It is closed, or could not be opened."""


TRANSITIONS = Transitions(
    {
        (KitLinkState.AWAY, KitLinkEvent.OPEN): KitLinkState.OPENING,
        (KitLinkState.OPENING, KitLinkEvent.READY): KitLinkState.UP,
        (KitLinkState.OPENING, KitLinkEvent.LEAVE): KitLinkState.CLOSING,
        (KitLinkState.OPENING, KitLinkEvent.CLOSE): KitLinkState.AWAY,
        (KitLinkState.UP, KitLinkEvent.LEND): KitLinkState.LENT,
        (KitLinkState.UP, KitLinkEvent.LEAVE): KitLinkState.CLOSING,
        (KitLinkState.LENT, KitLinkEvent.GIVE_BACK): KitLinkState.UP,
        (KitLinkState.LENT, KitLinkEvent.LEAVE): KitLinkState.CLOSING,
        (KitLinkState.CLOSING, KitLinkEvent.CLOSE): KitLinkState.AWAY,
    }
)
"""The modem of a kit is the agent's or lent from the first contact until the link is left."""


async def _leave(_modem: Modem) -> None:
    """Leave a modem that was closed."""


@dataclass
class KitLink:
    """The ports of one kit, and the modem on its AT port.

    `serve` looks after an open modem; it raises LinkLost when that is gone.
    """

    settings: KitSettings
    concern: Concern[LinkStatus]
    serve: Callable[[Modem], Coroutine[object, None, None]]

    def __post_init__(self) -> None:
        self.modem: Modem | None = None
        self.expects_restart = False
        """Whether an update is being installed: the kit's restarts are part of it."""
        self.on_mode_asked: Callable[[int], None] = lambda _mode: None
        """Called with the functional mode that a lease asked for last: a person's choice."""
        self.on_given_back: Callable[[], None] = lambda: None
        """Called when a lease has ended."""
        self.owed_bytes: Callable[[], int] = lambda: 0
        """Return how many bytes a silent kit may wait for, of an install that was killed."""
        self.on_steps: Callable[[list[TranscriptStep]], None] = lambda _steps: None
        """Called with what passes on the AT port, line by line, without secrets."""
        self.on_closed: Callable[[Modem], Awaitable[None]] = _leave
        """Called with each modem that was closed, or gave no answer: what came is in its lines."""
        self.on_new_software: Callable[[], None] = lambda: None
        """Called when the kit may run other software than before: updated, or flashed by hand."""
        self.at_port = HeldPort(self.concern, self.settings.port)
        self.ports = [self.at_port]
        """The kit's ports that the agent holds; the console adds its own."""
        self._up_since: float | None = None
        self._was_up_s = 0.0
        self._exclusive = asyncio.Lock()
        self._state = KitLinkState.AWAY
        self._up = asyncio.Event()
        """Set while there is a modem for others."""
        self.swaps = Changing()
        """Changes when a modem has answered that is another kit's than the one before."""

    @property
    def is_leased(self) -> bool:
        """Whether what the modem sends is for the holder of a lease."""
        return self._state is KitLinkState.LENT

    # --- the connection

    async def run(self) -> None:
        """Open the modem and serve it until it is lost: the work of the concern."""
        while True:
            async with self.at_port.opened():
                await self._connection()

    async def _connection(self) -> None:
        """Serve one connection. Returns when the port is released, else raises what ended it."""
        port = transport_of(self.settings.port, baud=self.settings.baud)
        transport = TappedTransport(port, Recorder(Redactor()), self.on_steps)
        modem = Modem(transport, dialect=self.settings.dialect)
        self._go(KitLinkEvent.OPEN)
        try:
            await modem.open(owed_bytes=self.owed_bytes())
            await self._serve_until_left(modem)
        finally:
            self._go(KitLinkEvent.CLOSE)
            await self.on_closed(modem)

    async def _serve_until_left(self, modem: Modem) -> None:
        try:
            await first_of(self.serve(modem), self.at_port.release_requested())
            if self.at_port.state is PortState.OPEN:
                raise LinkLost(f"{modem.name} was closed")
        except (AtError, OSError) as error:
            # A restart is an event of its own, though it may end a command in flight.
            if self.modem is not None and not isinstance(error, ModemReset):
                self.concern.publish(AgentEventKind.LINK_LOST, str(error))
            raise
        finally:
            self._go(KitLinkEvent.LEAVE)
            self._up.clear()
            self.modem = None
            self._was_up_s, self._up_since = self.up_s(), None
            await modem.close()

    def ready(self, modem: Modem) -> None:
        """Make the modem available; called by `serve` after its first contact."""
        self._go(KitLinkEvent.READY)
        self.modem = modem
        self._up_since = time.monotonic()
        self._up.set()
        self.concern.set_well()

    @contextlib.contextmanager
    def lent(self, modem: Modem) -> Iterator[None]:
        """Count the modem as lent while the block runs, at most until the link is left.

        Raises LinkLost if it was left before.
        """
        if self.modem is not modem:
            raise LinkLost(f"{modem.name} went away")
        self._go(KitLinkEvent.LEND)
        try:
            yield
        finally:
            if self.modem is modem:
                self._go(KitLinkEvent.GIVE_BACK)

    def _go(self, event: KitLinkEvent) -> None:
        self._state = TRANSITIONS[self._state, event]

    @property
    def is_free(self) -> bool:
        """Whether nobody has exclusive use of the kit."""
        return not self._exclusive.locked()

    def up_s(self) -> float:
        """Return for how many seconds there was a link, all in all."""
        current_s = 0.0 if self._up_since is None else time.monotonic() - self._up_since
        return self._was_up_s + current_s

    # --- the modem, for other concerns

    async def wait_up(self, waiting: Concern[ConcernStatus]) -> Modem:
        """Wait for the link and return the modem; `waiting` is in state WAITING meanwhile.

        Commands that are sent to it raise LinkLost once the link is lost.
        """
        while self.modem is None:
            waiting.set_waiting(THE_LINK)
            await self._up.wait()
        waiting.end_waiting(THE_LINK)
        return self.modem

    def available(self) -> Modem:
        """Return the modem. Raises KitAway, which says what is wrong."""
        if self.modem is None:
            why = self.concern.status.trouble or "it is being opened"
            hint = self.concern.status.hint or ""
            raise KitAway(f"the running agent has no link to the kit: {why}", hint=hint)
        return self.modem

    async def wait_available(self) -> Modem:
        """Return the modem; wait for a link that is being opened. Raises KitAway."""
        if self.modem is None and self.concern.phase is not Phase.TROUBLE:
            await wait_for_event(self._up, OPENING_S)
        return self.available()

    async def while_same_kit(self, work: Coroutine[object, None, T]) -> T:
        """Return what `work` returns; raise LinkLost, and end it, where another kit comes."""
        swapped = self.swaps.next_change
        result: list[T] = []

        async def done() -> None:
            result.append(await work)

        async def other() -> None:
            await swapped.wait()
            raise LinkLost(f"{self.settings.port}: another kit is here")

        await first_of(done(), other())
        return result[0]

    # --- exclusive use

    @contextlib.asynccontextmanager
    async def exclusive(self, what: str, *, patience_s: float | None = None) -> AsyncIterator[None]:
        """Keep every other user from the kit while the block runs.

        `what` is for people. Raises KitBusy after `patience_s` seconds; without it waits on.
        """
        try:
            async with asyncio.timeout(patience_s):
                await self._exclusive.acquire()
        except TimeoutError:
            raise KitBusy(
                f"the running agent is busy with the kit: {self.concern.status.busy_with}",
                hint="`cellagent status` shows how far it is; try again",
            ) from None
        with self.concern.changing() as status:
            status.busy_with = what
        try:
            yield
        finally:
            with self.concern.changing() as status:
                status.busy_with = None
            self._exclusive.release()

    async def require_kit(self, imei: str, what: str) -> None:
        """Raise LinkLost where the kit of an IMEI is not the one that answers; "" for any."""
        if self.modem is None or (imei and await read_imei(self.modem) != imei):
            raise LinkLost(f"{self.settings.port}: another kit is here, or none: not for {what}")

    @contextlib.asynccontextmanager
    async def released(self, port: str, what: str) -> AsyncIterator[None]:
        """Release one of the kit's ports to `what`, "" for none; the others stay open.

        The caller must have exclusive use.
        """
        async with contextlib.AsyncExitStack() as stack:
            for held in await asyncio.to_thread(self._held_as, port):
                await stack.enter_async_context(held.released(what))
            yield

    def _held_as(self, port: str) -> list[HeldPort]:
        return [held for held in self.ports if held.may_be(port)]


class LeaseHolder(Receiver, Protocol):
    """Another process that speaks to the modem while it has a lease."""

    async def send(self, answer: LeaseAnswer) -> None:
        """Send the answer that the lease has begun."""

    async def write_through(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Pass the bytes that the process writes to `write`, until it closes."""


@contextlib.asynccontextmanager
async def hold(link: KitLink, program: str) -> AsyncIterator[None]:
    """Release all ports of the kit to another program while the block runs. Raises KitBusy."""
    async with (
        link.exclusive(f"held by {program}", patience_s=EXCLUSIVE_WAIT_S),
        contextlib.AsyncExitStack() as stack,
    ):
        stack.callback(link.concern.wake.set)
        for held in link.ports:
            await stack.enter_async_context(held.released(program))
        with link.concern.changing() as status:
            status.held_by = program
        try:
            yield
        finally:
            link.on_new_software()  # most holds are for flashing the kit
            with link.concern.changing() as status:
                status.held_by = None


async def lease(link: KitLink, name: str, holder: LeaseHolder, program: str) -> None:
    """Connect another process to the modem until it closes. `name` is the name of the kit.

    Raises KitAway, KitBusy, LinkLost, NoAnswer before the answer that it has begun.
    """
    async with link.exclusive(f"lent to {program}", patience_s=EXCLUSIVE_WAIT_S):
        modem = await link.wait_available()  # a hold may have ended just now
        answer = LeaseAnswer(
            True, kit=name, dialect=modem.dialect.value, terminator=modem.terminator.value
        )
        tail = b""

        async def noted(write: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
            nonlocal tail
            tail = (tail + data)[-_TAIL:]
            if modes := _SET_MODE.findall(tail):
                link.on_mode_asked(int(modes[-1]))
            await write(data)

        async def connect(write: Callable[[bytes], Awaitable[None]]) -> None:
            await holder.send(answer)  # from here on an error would be taken for bytes of the modem
            await holder.write_through(partial(noted, write))

        try:
            with link.lent(modem):
                await modem.pass_through(holder, connect)
        finally:
            if _ASK_POSITION.search(tail):
                modem.own_position.begin(modem.notices)
            link.on_given_back()
