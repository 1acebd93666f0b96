"""One port that the agent holds for a concern, except while it is released to a program."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from enum import Enum, auto

from agent.daemon.snapshot import PortStatus
from agent.daemon.status import Concern
from agent.tasks import Changing, wait_for_event
from at.ports.usb import same_port
from at.protocol.state_machine import Transitions

DUMP_S = 60.0
"""Seconds to wait for the rest of a core dump: 256 kB of memory, in hex, at 115200 baud."""


class PortState(Enum):
    """Who has the port."""

    CLOSED = auto()
    OPEN = auto()
    ASKED = auto()
    """Open, and asked for; a core dump may end first."""
    CLOSING = auto()
    """Its reader stops, for the program that asked for it."""
    REOPENING = auto()
    """Its reader stops, though the program does not want it any more."""
    RELEASED = auto()
    """A program has it."""


class PortEvent(Enum):
    """What happens to a port."""

    OPEN = auto()
    ASK = auto()
    STOP = auto()
    """Its reader begins to stop, since it was asked for."""
    CLOSE = auto()
    """Its reader has ended, for whatever reason."""
    GIVE_BACK = auto()
    """The program does not want it any more, or has had it."""


TRANSITIONS = Transitions(
    {
        (PortState.CLOSED, PortEvent.OPEN): PortState.OPEN,
        (PortState.CLOSED, PortEvent.ASK): PortState.RELEASED,
        (PortState.OPEN, PortEvent.CLOSE): PortState.CLOSED,
        (PortState.OPEN, PortEvent.ASK): PortState.ASKED,
        (PortState.ASKED, PortEvent.STOP): PortState.CLOSING,
        (PortState.ASKED, PortEvent.CLOSE): PortState.RELEASED,
        (PortState.ASKED, PortEvent.GIVE_BACK): PortState.OPEN,
        (PortState.CLOSING, PortEvent.CLOSE): PortState.RELEASED,
        (PortState.CLOSING, PortEvent.GIVE_BACK): PortState.REOPENING,
        (PortState.REOPENING, PortEvent.ASK): PortState.CLOSING,
        (PortState.REOPENING, PortEvent.CLOSE): PortState.CLOSED,
        (PortState.RELEASED, PortEvent.GIVE_BACK): PortState.CLOSED,
    }
)
"""A port that the agent holds is open, or a program that asked for it has it: never both."""


class HeldPort(Changing):
    """One port that the agent holds for a concern, except while it is released to a program."""

    def __init__(self, concern: Concern[PortStatus], name: str | None = None) -> None:
        super().__init__()
        self.name = name
        """None while it is not known, so that it may be any port; "" if there is no such port."""
        self.released_to = ""
        """The program, or the work of the agent, that it is released to; "" while it is not."""
        self._concern = concern
        self.state = PortState.CLOSED
        self._no_dump = asyncio.Event()
        self._no_dump.set()
        self._released_s = 0.0

    def may_be(self, port: str) -> bool:
        """Return whether `port` may name this port; never for ""."""
        return bool(port) and (self.name is None or bool(self.name and same_port(self.name, port)))

    def set_dump_bytes(self, dump_bytes: int) -> None:
        """Record how much of a core dump that is being printed was received; 0 for no dump."""
        if dump_bytes:
            self._no_dump.clear()
        else:
            self._no_dump.set()

    async def release_requested(self) -> None:
        """Wait until the port has to be closed; a core dump may end first, for at most DUMP_S."""
        while self.state is not PortState.CLOSING:
            await self._until(PortState.ASKED)
            await wait_for_event(self._no_dump, DUMP_S)
            if self.state is PortState.ASKED:  # else who asked for it has given up
                self._go(PortEvent.STOP)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Wait until the port may be opened; it counts as open while the block runs."""
        if self.state is not PortState.CLOSED:
            self._concern.set_waiting(f"its port, let go for {self.released_to}")
            await self._until(PortState.CLOSED)
        self._go(PortEvent.OPEN)
        try:
            yield
        finally:
            self._no_dump.set()
            self._go(PortEvent.CLOSE)

    @contextlib.asynccontextmanager
    async def released(self, to: str) -> AsyncIterator[None]:
        """Keep the port closed while the block runs. The caller must have exclusive use."""
        self._go(PortEvent.ASK)
        self.released_to = to
        try:
            await self._until(PortState.RELEASED)
            with self._counted(to):
                yield
        finally:
            self.released_to = ""
            self._go(PortEvent.GIVE_BACK)

    def _go(self, event: PortEvent) -> None:
        self.state = TRANSITIONS[self.state, event]
        self.notify_changed()

    async def _until(self, state: PortState) -> None:
        while self.state is not state:
            await self.next_change.wait()

    @contextlib.contextmanager
    def _counted(self, to: str) -> Iterator[None]:
        """Show in `status` to whom the port is released, how often and for how many seconds."""
        began = time.monotonic()
        with self._concern.changing() as status:
            status.let_go_for = to
        try:
            yield
        finally:
            self._released_s += time.monotonic() - began
            with self._concern.changing() as status:
                status.let_go_for = None
                status.let_go += 1
                status.let_go_s = round(self._released_s, 1)
