"""The whole agent: its kits, one outbox, one way out; started, reloaded, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec

import agent
from agent.config.profile import kits_of
from agent.daemon import stall_watch
from agent.daemon.control.server import ControlServer
from agent.daemon.control.socket import control_socket_of
from agent.daemon.kit.kit import KitAgent
from agent.daemon.metrics import Metrics
from agent.daemon.outgoing import Outgoing
from agent.daemon.own_events import Happened, Happening
from agent.daemon.stall_watch import StallWatch
from agent.daemon.status import Board
from agent.daemon.supervisor import supervise
from agent.errors import AgentError, UsageError
from agent.outbox.outbox import ClockStepDetector
from agent.wiring.forwarding import outbox_folder, utc_now
from agent.wiring.service_client import connect
from at.ports.usb import same_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.config import Configuration, Profile
    from agent.config.profile import KitSettings
    from agent.http import HttpClient

STOP_S = 4.0
"""How long everything may take to end; the rest of five seconds is the outbox's."""
_BEAT_S = 30.0
_log = logging.getLogger(__name__)


class Agent:
    """Runs until `stop` is called. `configure` reads the configuration, at start and at reload."""

    def __init__(self, configure: Callable[[], Configuration]) -> None:
        self._configure = configure
        self._configuration = configure()
        kits_of(self._configuration.profile)  # a mistake is told before anything is opened
        self.board = Board()
        self._metrics = Metrics(self.board)
        self.kits: dict[str, KitAgent] = {}
        self._started = time.time()
        self._stopping = asyncio.Event()
        self._reloading = asyncio.Lock()
        self.outgoing: Outgoing
        self._client: HttpClient
        self._tasks: list[asyncio.Task[None]] = []
        self._housekeeping = self.board.concern("housekeeping")

    @property
    def configuration(self) -> Configuration:
        """What it runs with now."""
        return self._configuration

    def stop(self) -> None:
        """Ask it to end."""
        self._stopping.set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Run until it is told to stop; `ready` is called once it listens.

        Raises OutboxHeld while another agent runs with this profile.
        """
        configuration = self._configuration
        async with AsyncExitStack() as stack:
            self.outgoing = Outgoing(
                outbox_folder(configuration),
                configuration.profile.outbox,
                self.board.concern("outbox"),
            )
            stack.callback(self.outgoing.close)
            self._client = connect(configuration, unattended=True)
            stack.push_async_callback(self._end)
            control = ControlServer(
                self, control_socket_of(configuration.state_dir, configuration.name)
            )
            await control.start()
            # Before the kits: who borrows a modem gives it back, and it is left as it was found.
            stack.push_async_callback(control.stop)
            await self._begin()
            watch = StallWatch(self._stands_still)
            watch.start()
            stack.callback(watch.stop)
            self._tasks.append(
                asyncio.ensure_future(supervise(self._housekeeping, self._keep_house))
            )
            self._metrics.serve(configuration.profile.metrics.listen)
            stack.callback(self._metrics.serve, "")
            stall_watch.notify("READY=1")
            ready()
            await self._stopping.wait()
            stall_watch.notify("STOPPING=1")

    # --- what the control socket asks

    async def status(self) -> dict[str, Any]:
        """Return everything that `status --json` shows."""
        kits = []
        for kit in self.kits.values():
            concerns = [each for each in self.board.concerns if each.kit == kit.name]
            kits.append(
                {
                    "name": kit.name,
                    "port": kit.kit.port,
                    "concerns": [concern.snapshot() for concern in concerns],
                }
            )
        return {
            "agent": {
                "pid": os.getpid(),
                "version": agent.__version__,
                "profile": self._configuration.name,
                "since": round(self._started, 3),
            },
            "outbox": await self.outgoing.snapshot(),
            "housekeeping": self._housekeeping.snapshot(),
            "kits": kits,
        }

    async def changed(self) -> None:
        """Wait for the next change."""
        await self.board.changed()

    def kit(self, name: str) -> KitAgent:
        """Return the kit of a name or a port; the only one for "". Raises UsageError."""
        if not name and len(self.kits) == 1:
            return next(iter(self.kits.values()))
        for kit in self.kits.values():
            if kit.name == name or same_port(kit.kit.port, name):
                return kit
        there = ", ".join(self.kits)
        raise UsageError(
            f"the running agent has no kit {name!r}" if name else "name the kit",
            hint=f"it has {there}",
        )

    async def reload(self) -> None:
        """Read the profile again; a kit whose part did not change keeps its link.

        Raises ConfigError, UsageError, RefusedByRule, and goes on as before then: what may fail
        comes first.
        """
        async with self._reloading:
            stall_watch.notify(stall_watch.reloading())
            try:
                fresh = self._configure()
                wanted = kits_of(fresh.profile)
                if fresh.name != self._configuration.name:
                    raise UsageError(
                        f"the configuration now chooses the profile {fresh.name}; this agent runs "
                        f"{self._configuration.name}, and has its outbox",
                        hint=f"stop it, then `cellagent run --profile {fresh.name}`",
                    )
                client = connect(fresh, unattended=True)
                try:
                    await asyncio.to_thread(self._metrics.serve, fresh.profile.metrics.listen)
                except AgentError:
                    await client.close()
                    raise
                self.outgoing.outbox.set_limits(fresh.profile.outbox)
                await self._exchange(fresh, wanted, client)
                self._housekeeping.tell(logging.INFO, "the profile was read again")
            finally:
                stall_watch.notify("READY=1")

    async def _exchange(
        self, fresh: Configuration, wanted: Mapping[str, KitSettings], client: HttpClient
    ) -> None:
        ours = self._client
        self._configuration, self._client = fresh, client
        gone = [name for name in self.kits if name not in wanted]
        await asyncio.gather(*(self._drop(name) for name in gone))
        for name, kit in wanted.items():
            profile = msgspec.structs.replace(fresh.profile, kit=kit)
            if name in self.kits and self.kits[name].profile.kit == kit:
                await self.kits[name].go_on_with(profile, client)
                continue
            if name in self.kits:
                await self._drop(name)
            self._add(name, profile)
        await self.outgoing.deliver_with(client)
        await ours.close()

    # --- parts

    async def _begin(self) -> None:
        await self.outgoing.deliver_with(self._client)
        for name, kit in kits_of(self._configuration.profile).items():
            self._add(name, msgspec.structs.replace(self._configuration.profile, kit=kit))

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        ends = [self.outgoing.stop(), *(kit.stop() for kit in self.kits.values())]
        try:
            async with asyncio.timeout(STOP_S):
                await asyncio.gather(
                    *self._tasks, *ends, self._client.close(), return_exceptions=True
                )
        except TimeoutError:
            _log.warning("something did not end in time and is left behind")

    def _add(self, name: str, profile: Profile) -> None:
        kit = self.kits[name] = KitAgent(
            name,
            profile,
            self._client,
            board=self.board,
            outbox=self.outgoing.outbox,
            state_dir=self._configuration.state_dir,
            wake_delivery=self.outgoing.wake,
        )
        kit.start()

    async def _drop(self, name: str) -> None:
        await self.kits.pop(name).stop()
        self.board.forget(name)

    async def _keep_house(self) -> None:
        """Show systemd a sign of life; notice when this host's clock was set."""
        self._housekeeping.well()
        watchdog = stall_watch.watchdog_s()
        beat = _BEAT_S if watchdog is None else min(_BEAT_S, watchdog / 2)
        clocks = ClockStepDetector(time.time(), time.monotonic())
        while True:
            await asyncio.sleep(beat)
            stall_watch.notify("WATCHDOG=1")
            if stepped := clocks.step(time.time(), time.monotonic()):
                self._housekeeping.tell(
                    logging.WARNING,
                    f"the clock of this host was set by {stepped:+.0f} s (or it slept)",
                )
                self.outgoing.try_now()
                for concern in self.board.concerns:
                    concern.wake.set()

    def _stands_still(self, text: str) -> None:
        """Hear, in another thread, that the event loop does nothing any more."""
        self._housekeeping.tell(logging.WARNING, text)
        happened = Happened(Happening.WATCHDOG, utc_now(), text)
        for kit in list(self.kits.values()):
            try:
                kit.events.keep_at_once(happened)
            except AgentError as error:
                self._housekeeping.tell(logging.WARNING, f"no event of it was kept: {error}")
