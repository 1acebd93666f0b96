"""The link to one kit: opened, watched, opened again; lent in turns, let go on request."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from agent.daemon.together import first_of
from agent.errors import Unavailable
from agent.own_events import Happening
from at.errors import AtError, LinkLost, ModemReset
from at.modem import Modem
from at.opening import transport_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from agent.config.profile import Kit
    from agent.daemon.board import Concern

TURN_S = 90.0
"""How long another command waits for its turn: a scan of cells takes up to a minute."""


class KitBusy(Unavailable):
    """The kit is in the middle of something that must not be broken off."""

    exit_code = 3
    kind = "kit-busy"


class KitAway(Unavailable):
    """The running agent has no link to the kit itself."""

    exit_code = 3
    kind = "kit-away"


class KitLink:
    """The ports of one kit, its AT port first of all."""

    def __init__(
        self, kit: Kit, concern: Concern, serve: Callable[[Modem], Coroutine[Any, Any, None]]
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
        self._up_since: float | None = None
        self._was_up_s = 0.0
        self._serve = serve
        self._turn = asyncio.Lock()
        self._up = asyncio.Event()
        self._held = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._open_ports = 0
        self._closed = asyncio.Event()

    async def run(self) -> None:
        """Open the modem and serve it until it is lost: the work of the concern."""
        while True:
            await self.free()
            with self.port_open():
                await self._connection()

    async def _connection(self) -> None:
        """One connection: ends by returning when it is let go, else by what ended it."""
        modem = Modem(transport_of(self.kit.port, baud=self.kit.baud), dialect=self.kit.dialect)
        await modem.open()
        try:
            await first_of(self._serve(modem), self._held.wait())
            if not self._held.is_set():
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

    async def free(self) -> None:
        """Wait for the end of a hold, if there is one."""
        if not self._free.is_set():
            self.concern.waits("the end of a hold")
            await self._free.wait()

    async def held(self) -> None:
        """Wait until somebody wants the ports: they are to be closed then."""
        await self._held.wait()

    @contextlib.contextmanager
    def port_open(self) -> Iterator[None]:
        """Count a port of the kit as open while the block runs."""
        self._open_ports += 1
        self._closed.clear()
        try:
            yield
        finally:
            self._open_ports -= 1
            if not self._open_ports:
                self._closed.set()

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
    async def let_go(self, who: str) -> AsyncIterator[None]:
        """Keep the kit's ports closed for as long as the block runs. Raises KitBusy."""
        async with self.undisturbed(f"held by {who}", patience_s=TURN_S):
            self._free.clear()
            self._held.set()
            try:
                if self._open_ports:
                    await self._closed.wait()
                self.concern.learn(held_by=who)
                yield
            finally:
                self.on_new_software()  # what holds are for: flashing
                self.concern.learn(held_by=None)
                self._held.clear()
                self._free.set()
                self.concern.wake.set()
