"""The link to one kit: opened, watched, opened again; lent in turns, let go on request.

Whoever needs the kit undisturbed has the turn. Whoever opens its ports has them closed besides.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from agent.daemon.own_events import Happening
from agent.daemon.status import State
from agent.errors import ResourceUnavailable, Unavailable
from agent.tasks import first_of
from at.driver.modem import Modem
from at.driver.opening import transport_of
from at.ports.usb import same_port
from at.protocol.errors import AtError, LinkLost, ModemReset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from agent.config.profile import KitSettings
    from agent.daemon.status import Concern


DUMP_S = 60.0
"""How long the rest of a core dump is waited for: 256 kB of memory, in hex, at 115200 baud."""


class KeptPort:
    """One port of a kit; `concern` is what it is kept for. At most one at a time has it closed."""

    def __init__(self, concern: Concern, name: str | None = None) -> None:
        self.name = name
        """"" where there is none; None while it is not known which it is: it may be any."""
        self.let_go_for = ""
        """What has it closed."""
        self._concern = concern
        self._wanted = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._closed = asyncio.Event()
        self._closed.set()
        self._no_dump = asyncio.Event()
        self._no_dump.set()
        self._times = 0
        self._seconds = 0.0

    def may_be(self, port: str) -> bool:
        """Tell whether this can be the port of another name; "" is none."""
        return bool(port) and (self.name is None or bool(self.name and same_port(self.name, port)))

    def dump_comes(self, dump_bytes: int) -> None:
        """Hear how much there is of a core dump that is being printed; 0 where none is."""
        if dump_bytes:
            self._no_dump.clear()
        else:
            self._no_dump.set()

    @property
    def is_wanted(self) -> bool:
        """Tell whether it is to be closed."""
        return self._wanted.is_set()

    async def wanted(self) -> None:
        """Wait until it is to be closed: after a core dump that is being printed just then."""
        await self._wanted.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DUMP_S):
                await self._no_dump.wait()

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Wait until it may be opened; it counts as open while the block runs."""
        while not self._free.is_set():
            self._concern.waits(f"its port is let go for {self.let_go_for}")
            await self._free.wait()
        self._closed.clear()
        try:
            yield
        finally:
            self._no_dump.set()
            self._closed.set()

    @contextlib.asynccontextmanager
    async def let_go(self, whom: str) -> AsyncIterator[None]:
        """Keep it closed while the block runs; `status` tells for whom, how often, how long."""
        self.let_go_for = whom
        self._free.clear()
        self._wanted.set()
        try:
            await self._closed.wait()
            with self._counted(whom):
                yield
        finally:
            self.let_go_for = ""
            self._wanted.clear()
            self._free.set()

    @contextlib.contextmanager
    def _counted(self, whom: str) -> Iterator[None]:
        begun = time.monotonic()
        self._concern.learn(let_go_for=whom)
        try:
            yield
        finally:
            self._times += 1
            self._seconds += time.monotonic() - begun
            self._concern.learn(
                let_go_for=None, let_go=self._times, let_go_s=round(self._seconds, 1)
            )


TURN_S = 90.0
"""How long another command waits for its turn: a scan of cells takes up to a minute."""
OPENING_S = 30.0
"""How long a link that is being opened is waited for: its baud rate may have to be found."""


class KitBusy(ResourceUnavailable, Unavailable):
    """The kit is in the middle of something that must not be broken off."""

    kind = "kit-busy"


class KitAway(ResourceUnavailable, Unavailable):
    """The running agent has no link to the kit itself."""

    kind = "kit-away"


class KitLink:
    """The ports of one kit, its AT port first of all."""

    def __init__(
        self,
        kit: KitSettings,
        concern: Concern,
        serve: Callable[[Modem], Coroutine[Any, Any, None]],
    ) -> None:
        """`serve` looks after an open modem; it raises LinkLost when that is gone."""
        self.kit = kit
        self.concern = concern
        self.modem: Modem | None = None
        self.busy_with = ""
        """What must not be broken off now."""
        self.expects_restart = False
        """Whether an update is being installed: the kit's restarts are part of it."""
        self.on_new_software: Callable[[], None] = lambda: None
        """Called when the kit may run other software than before: updated, or flashed by hand."""
        self.at_port = KeptPort(concern, kit.port)
        self.ports = [self.at_port]
        """The kit's ports that the agent keeps open; the console adds its own."""
        self._up_since: float | None = None
        self._was_up_s = 0.0
        self._serve = serve
        self._turn = asyncio.Lock()
        self._up = asyncio.Event()

    async def run(self) -> None:
        """Open the modem and serve it until it is lost: the work of the concern."""
        while True:
            async with self.at_port.opened():
                await self._connection()

    async def _connection(self) -> None:
        """One connection: ends by returning when it is let go, else by what ended it."""
        modem = Modem(transport_of(self.kit.port, baud=self.kit.baud), dialect=self.kit.dialect)
        await modem.open()
        try:
            await first_of(self._serve(modem), self.at_port.wanted())
            if not self.at_port.is_wanted:
                raise LinkLost(f"{modem.name} was closed")
        except (AtError, OSError) as error:
            # A restart is a happening of its own, though it may end what we were asking.
            if self.modem is not None and not isinstance(error, ModemReset):
                self.concern.happened(Happening.LINK_LOST, str(error))
            raise
        finally:
            self._up.clear()
            self.modem = None
            self._was_up_s, self._up_since = self.up_s(), None
            await modem.close()

    def ready(self, modem: Modem) -> None:
        """Let the other concerns use the modem; called by `serve` after its first contact."""
        self.modem = modem
        self._up_since = time.monotonic()
        self._up.set()
        self.concern.well()

    def up_s(self) -> float:
        """Return for how many seconds there was a link, all in all."""
        current_s = 0.0 if self._up_since is None else time.monotonic() - self._up_since
        return self._was_up_s + current_s

    async def up(self, waiting: Concern) -> Modem:
        """Wait for the link; return the modem. When that is lost it raises LinkLost."""
        while self.modem is None:
            waiting.waits("the link to the kit")
            await self._up.wait()
        return self.modem

    def available(self) -> Modem:
        """Return the modem. Raises KitAway, which says what is wrong."""
        if self.modem is None:
            why = self.concern.trouble or "it is being opened"
            raise KitAway(
                f"the running agent has no link to the kit: {why}", hint=self.concern.hint
            )
        return self.modem

    async def soon(self) -> Modem:
        """Return the modem, of a link that is being opened, too. Raises KitAway."""
        if self.modem is None and self.concern.state is not State.TROUBLE:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(OPENING_S):
                    await self._up.wait()
        return self.available()

    @contextlib.asynccontextmanager
    async def undisturbed(
        self, what: str, *, patience_s: float | None = None
    ) -> AsyncIterator[None]:
        """Have the kit to ourselves: nobody is lent it meanwhile. Raises KitBusy."""
        try:
            async with asyncio.timeout(patience_s):
                await self._turn.acquire()
        except TimeoutError:
            raise KitBusy(
                f"the running agent is busy with the kit: {self.busy_with}",
                hint="`cellagent status` shows how far it is; try again",
            ) from None
        self.busy_with = what
        self.concern.learn(busy_with=what)
        try:
            yield
        finally:
            self.busy_with = ""
            self.concern.learn(busy_with=None)
            self._turn.release()

    @contextlib.asynccontextmanager
    async def visited(self, port: str, what: str) -> AsyncIterator[None]:
        """Have the kit to ourselves while `what` opens one of its ports; "" where it opens none.

        It is closed here meanwhile, if it is open here; the kit's other ports stay open.
        """
        async with self.undisturbed(what), contextlib.AsyncExitStack() as stack:
            for kept in await asyncio.to_thread(self._kept_as, port):
                await stack.enter_async_context(kept.let_go(what))
            yield

    def _kept_as(self, port: str) -> list[KeptPort]:
        return [kept for kept in self.ports if kept.may_be(port)]

    @contextlib.asynccontextmanager
    async def let_go(self, who: str) -> AsyncIterator[None]:
        """Keep the kit's ports closed for as long as the block runs. Raises KitBusy."""
        async with (
            self.undisturbed(f"held by {who}", patience_s=TURN_S),
            contextlib.AsyncExitStack() as stack,
        ):
            stack.callback(self.concern.wake.set)
            for kept in self.ports:
                await stack.enter_async_context(kept.let_go(who))
            self.concern.learn(held_by=who)
            try:
                yield
            finally:
                self.on_new_software()  # what holds are for: flashing
                self.concern.learn(held_by=None)
