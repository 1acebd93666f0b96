"""The whole agent: its kits, one outbox, one delivery; started, reloaded, stopped."""

import asyncio
import logging
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import msgspec

import agent
from agent.call import Scheme
from agent.config import Configuration, Profile
from agent.config.kits import kits_of
from agent.daemon import watchdog
from agent.daemon.control.server import ControlServer
from agent.daemon.control.socket import control_socket_of
from agent.daemon.kit.kit import KitAgent
from agent.daemon.kit.store import KitStore, kits_folder
from agent.daemon.metrics import MetricsServer
from agent.daemon.outbox_delivery import OutboxDelivery
from agent.daemon.service_watch import WATCH_S, ServiceWatch
from agent.daemon.snapshot import (
    AgentProcess,
    AgentStatus,
    ConcernStatus,
    HousekeepingStatus,
    KitStatus,
    LinkStatus,
    OutboxStatus,
)
from agent.daemon.states import headline, worst
from agent.daemon.status import AgentEvent, AgentEventKind, StatusRegistry
from agent.daemon.supervisor import supervise
from agent.errors import AgentError, UsageError
from agent.files.trusted_places import require_trusted_folder
from agent.http import HttpClient
from agent.outbox.delivery_loop import Sender
from agent.outbox.delivery_requests import ServiceSender
from agent.outbox.items import unnamed
from agent.outbox.outbox import Outbox, since_boot
from agent.tasks import cancel_and_wait, first_of
from agent.wiring.chunks_by_kit import ChunksByKit
from agent.wiring.forwarding import outbox_folder
from agent.wiring.service_client import connect
from at.driver.modem import Modem
from at.ports.usb import same_port
from at.protocol.errors import PortNotFound

STOP_S = 4.0
"""Seconds that all tasks have to end: of the promised five, the rest is for the outbox."""
_STATUS_S = 5.0  # for which a reader of the metrics waits
_KNOWS_SLEEP = sys.platform == "linux"
_HOUSEKEEPING_S = 30.0  # between two looks at the clock; no kit's heartbeat
_log = logging.getLogger(__name__)


async def _serve_none(_configuration: Configuration) -> None:
    """Serve no page."""


class Agent:
    """Runs until `stop` is called. `configure` reads the configuration, at start and at reload."""

    def __init__(self, configure: Callable[[], Configuration]) -> None:
        self._configure = configure
        self.configuration = configure()
        """The one that is in effect."""
        kits_of(self.configuration.profile)  # a mistake is reported before anything is opened
        self.registry = StatusRegistry()
        self.registry.profile = self.configuration.name
        self.registry.has_table = bool(self.configuration.profile.kits)
        self.kits: dict[str, KitAgent] = {}
        self.delivery: OutboxDelivery
        self.page_link: Callable[[], str] | None = None
        """Returns a new link to the page that is served beside this agent; None where none is."""
        self.serve_page: Callable[[Configuration], Awaitable[None]] = _serve_none
        """Serves that page as a configuration that is read again has it. Raises AgentError, and
        then serves it as before."""
        self._metrics = MetricsServer(self._statuses)
        self._stopping = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._reloader: asyncio.Task[None] | None = None
        """Whose reload is under way."""
        self._leaving: list[asyncio.Task[None]] = []
        """What ends the kits that the last reload took out."""
        self._client: HttpClient
        self._loop: asyncio.AbstractEventLoop
        self._services = ServiceWatch()
        self._clocks = watchdog.ClockStepDetector(time.time(), time.monotonic())
        self._awake = watchdog.ClockStepDetector(time.time(), since_boot())
        self._housekeeping = self.registry.add_concern(HousekeepingStatus)

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Run until `stop`; `ready` is called once the control socket listens.

        Raises OutboxHeld while another agent runs with this profile.
        """
        configuration = self.configuration
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            self.delivery = OutboxDelivery(
                outbox_folder(configuration),
                configuration.profile.outbox,
                self.registry.add_concern(OutboxStatus),
            )
            stack.callback(self.delivery.close)
            self._client = connect(configuration, unattended=True)
            stack.push_async_callback(self._stop_parts)
            control_socket = control_socket_of(configuration.state_dir, configuration.name)
            control = ControlServer(self, control_socket)
            await control.start()
            # Stopped before the kits: a leased modem is given back, and left as it was found.
            stack.push_async_callback(control.stop)
            self._metrics.serve(configuration.profile.metrics.listen)
            stack.callback(self._metrics.serve, "")
            await self._start_parts()
            detector = watchdog.StallDetector(self._on_stall)
            detector.start()
            stack.callback(detector.stop)
            self.registry.on_service_back = self._service_is_back
            keeping = asyncio.ensure_future(supervise(self._housekeeping, self._keep))
            stack.push_async_callback(cancel_and_wait, keeping)
            watchdog.notify("READY=1")
            ready()
            await self._stopping.wait()
            watchdog.notify("STOPPING=1")

    # --- requests of the control socket

    @property
    def outbox(self) -> Outbox:
        """The agent's outbox; no other process has it meanwhile."""
        return self.delivery.outbox

    async def status(self) -> AgentStatus:
        """Return what `status --json` prints; it changes as the agent goes on."""
        self._follow_clock()
        now = self.registry.now()
        for concern in self.registry.concerns:
            concern.evaluate()
        outbox, of_device = await self.delivery.status(now)
        housekeeping = self._housekeeping.status
        kits = []
        for kit in self.kits.values():
            concerns = kit.concerns()
            state = worst(each.state for each in concerns)
            status = KitStatus(kit.name, kit.settings.port, state, concerns)
            device = status.concern(LinkStatus).device_id or unnamed(kit.name)
            status.outbox = of_device.get(device, status.outbox)
            kits.append(status)
        return AgentStatus(
            AgentProcess(
                os.getpid(), agent.__version__, self.configuration.name, self.registry.since
            ),
            headline((outbox, housekeeping), kits, now),
            outbox,
            housekeeping,
            kits,
        )

    def _statuses(self) -> list[tuple[str, ConcernStatus]]:
        """Return the status of each concern with its kit; called in another thread.

        Without what the outbox holds while the event loop stands still, or ends.
        """
        asked = asyncio.run_coroutine_threadsafe(self.status(), self._loop)
        try:
            status = asked.result(_STATUS_S)
        except (AgentError, TimeoutError, CancelledError):
            asked.cancel()
            return self.registry.statuses()
        kits = [(kit.name, each) for kit in status.kits for each in kit.concerns]
        return [("", status.housekeeping), ("", status.outbox), *kits]

    def kit(self, name: str) -> KitAgent:
        """Return the kit of a name or a port; the only one for "". Raises UsageError."""
        if not name and len(self.kits) == 1:
            return next(iter(self.kits.values()))
        for kit in self.kits.values():
            if kit.name == name or same_port(kit.settings.port, name):
                return kit
        raise UsageError(
            f"the running agent has no kit {name!r}" if name else "name the kit",
            hint=f"it has {', '.join(self.kits)}",
        )

    async def reload(self) -> None:
        """Read the profile again; a kit whose part did not change keeps its link.

        Raises ConfigError, UsageError, RefusedByRule; the agent then goes on as before, because
        everything that can fail comes before the first change.
        """
        async with self._reloading:
            self._reloader = asyncio.current_task()
            watchdog.notify(watchdog.reloading())
            try:
                configuration = self._read_again()
                if self._stopping.is_set():
                    return  # a mistake in the profile was told; nothing is begun any more
                client = connect(configuration, unattended=True)
                await self._listen_as(configuration)
                self.outbox.set_limits(configuration.profile.outbox)
                await self._apply(configuration, client)
                self._housekeeping.log(logging.INFO, "the profile was read again")
            finally:
                self._reloader = None
                watchdog.notify("READY=1")

    def _read_again(self) -> Configuration:
        """Return the configuration as it is now, if this agent can go on with it."""
        try:
            configuration = self._configure()
        except PortNotFound as error:
            port = "`cellagent config set kit.port PORT`"
            raise UsageError(str(error), hint=port) from error
        kits_of(configuration.profile)
        if configuration.name != self.configuration.name:
            raise UsageError(
                f"the configuration now chooses the profile {configuration.name}; this "
                f"agent runs {self.configuration.name}, and has its outbox",
                hint=f"stop it, then `cellagent run --profile {shlex.quote(configuration.name)}`",
            )
        # As each kit's store does.
        require_trusted_folder(kits_folder(configuration.state_dir, configuration.name))
        return configuration

    async def _listen_as(self, configuration: Configuration) -> None:
        """Serve page and metrics where a configuration has them, or raise, and serve as before."""
        try:
            await self.serve_page(configuration)
            await asyncio.to_thread(self._metrics.serve, configuration.profile.metrics.listen)
        except AgentError:
            await self.serve_page(self.configuration)  # at its old place, where the metrics failed
            raise

    async def _apply(self, configuration: Configuration, client: HttpClient) -> None:
        """Replace configuration and client; stop, restart, reconfigure or add each kit."""
        old_client, kits = self._client, kits_of(configuration.profile)
        self.configuration, self._client = configuration, client
        self.registry.has_table = bool(configuration.profile.kits)
        # All of them first: a port may go from one kit to another.
        removed = [name for name, kit in self.kits.items() if kits.get(name) != kit.settings]
        self._leaving = [asyncio.ensure_future(self._remove_kit(name)) for name in removed]
        # An agent that is stopped meanwhile waits for them, too: their modems are being put back.
        await asyncio.gather(*map(asyncio.shield, self._leaving))
        for name, kit in kits.items():
            profile = msgspec.structs.replace(configuration.profile, kit=kit)
            if name in self.kits:
                await self.kits[name].reconfigure(profile, client)
            else:
                self._add_kit(name, profile)
        await self.delivery.start(self._sender(client))
        await old_client.close()

    # --- parts

    async def _start_parts(self) -> None:
        await self.delivery.start(self._sender(self._client))
        for name, kit in kits_of(self.configuration.profile).items():
            self._add_kit(name, msgspec.structs.replace(self.configuration.profile, kit=kit))

    def _sender(self, client: HttpClient) -> Sender:
        """Return what sends the items of the outbox, by the way that the profile names."""
        host = ServiceSender(client)
        if self.configuration.profile.outbox.through == "host":
            return host
        return ChunksByKit(host, self._modem_of, client.keyring.project_key(Scheme.PROJECT_KEY))

    async def _modem_of(self, device: str) -> Modem | None:
        """Return the modem of the kit that is a device, None for none. Raises KitAway."""
        for kit in self.kits.values():
            if kit.device_id == device:
                return kit.link.available()
        return None

    async def _stop_parts(self) -> None:
        ends = [self.delivery.stop(), *(kit.stop() for kit in self.kits.values()), *self._leaving]
        if self._reloader is not None:  # it would add kits, and deliver
            self._reloader.cancel()
            ends.append(self._reloader)
        try:
            async with asyncio.timeout(STOP_S):
                await asyncio.gather(*ends, self._client.close(), return_exceptions=True)
        except TimeoutError:
            _log.warning("something did not end in time and is left behind")

    def _add_kit(self, name: str, profile: Profile) -> None:
        self.registry.ports[name] = profile.kit.port
        kit = self.kits[name] = KitAgent(
            name,
            profile,
            self._client,
            registry=self.registry,
            outbox=self.outbox,
            store=KitStore(self.configuration.state_dir, self.configuration.name, name),
            wake_delivery=self.delivery.wake,
        )
        kit.start()

    async def _remove_kit(self, name: str) -> None:
        await self.kits.pop(name).stop()
        self.registry.remove_kit(name)

    async def _keep(self) -> None:
        self._housekeeping.set_well()
        await first_of(self._keep_house(), self._watch_services())

    async def _watch_services(self) -> None:
        """Try everything again once a service answers, whatever the waits are."""
        while True:
            await asyncio.sleep(WATCH_S)
            if not any(concern.awaits_service for concern in self.registry.concerns):
                self._services.forget()
            elif await self._services.is_back(self._client):
                self.registry.service_is_back()

    def _service_is_back(self) -> None:
        self.delivery.service_is_back()
        for kit in self.kits.values():
            kit.service_is_back()

    async def _keep_house(self) -> None:
        """Feed systemd's watchdog and the kits, and follow this host's clock."""
        timeout_s = watchdog.watchdog_s()
        interval_s = _HOUSEKEEPING_S if timeout_s is None else min(_HOUSEKEEPING_S, timeout_s / 2)
        while True:
            await asyncio.sleep(interval_s)
            if timeout_s is not None:
                watchdog.notify("WATCHDOG=1")
            for kit in self.kits.values():
                kit.keep_house()
            self._follow_clock()

    def _follow_clock(self) -> None:
        """Keep the ages of what was recorded, and retry everything, where the clock was set."""
        # Where the time since boot lacks that of sleep, a sleep is not told from a setting.
        if _KNOWS_SLEEP and (set_by_s := self._awake.step(time.time(), since_boot())):
            self.registry.clock_was_set(set_by_s)
        if stepped := self._clocks.step(time.time(), time.monotonic()):
            self._housekeeping.log(
                logging.WARNING, f"the clock of this host was set by {stepped:+.0f} s (or it slept)"
            )
            self.delivery.try_now()
            for concern in self.registry.concerns:
                concern.wake.set()

    def _on_stall(self, text: str) -> None:
        """Log a stall of the event loop and put its event on disk; called in another thread."""
        self._housekeeping.log(logging.WARNING, text)
        event = AgentEvent(AgentEventKind.WATCHDOG, datetime.now(UTC), text)
        for kit in list(self.kits.values()):
            try:
                kit.events.keep_at_once(event)
            except AgentError as error:
                self._housekeeping.log(logging.WARNING, f"no event of it was kept: {error}")
