"""One kit: its link, console, events, positions and updates, wired together."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from agent.auth.modem_jwt import ModemJwt, ask_modem
from agent.config import Profile
from agent.config.profile import KitSettings
from agent.daemon.kit.connection import KitConnection
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.events_and_heartbeat import KitEvents
from agent.daemon.kit.identity import KitIdentity
from agent.daemon.kit.link import EXCLUSIVE_WAIT_S, KitAway, KitBusy, KitLink
from agent.daemon.kit.positions import KitPositions
from agent.daemon.kit.store import KitStore
from agent.daemon.kit.updates import KitUpdates
from agent.daemon.recent import HTTP
from agent.daemon.snapshot import (
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    KitConcern,
    LinkStatus,
    LocationStatus,
)
from agent.daemon.status import StatusRegistry
from agent.daemon.supervisor import supervise
from agent.errors import AgentError
from agent.http import HttpClient
from agent.outbox import Outbox
from agent.tasks import cancel_and_wait
from agent.wiring.update_runner import owed_bytes
from at.driver.modem import Modem
from at.firmware_gate import require_firmware
from at.tokens.jwt import Jwt

_RELOAD_S = 10.0  # for which a reload waits for exclusive use of the kit
_CONSOLE_WAIT_S = 5.0  # the longest between two tries to open a console
_TYPED_S = 60.0  # for the answer to a command that a person typed


class KitAgent:
    """Looks after one kit, from `start` to `stop`."""

    def __init__(
        self,
        name: str,
        profile: Profile,
        client: HttpClient,
        *,
        registry: StatusRegistry,
        outbox: Outbox,
        store: KitStore,
        wake_delivery: Callable[[], None],
    ) -> None:
        """`profile.kit` is this kit; `client` has the credentials that are not the kit's own."""

        def name_device(unnamed: str, device: str) -> None:
            outbox.submit(lambda store: store.name_device(unnamed, device))
            wake_delivery()  # what waited for its device can go now

        self.name = name
        self.profile = profile
        self._store = store
        self._identity = KitIdentity(name, profile.kit, store, name_device)
        self._identity.namesakes = partial(registry.namesakes, name)
        self.link = KitLink(profile.kit, registry.add_concern(LinkStatus, name), self._serve)
        self.events = KitEvents(
            registry.add_concern(EventsStatus, name),
            outbox,
            self._identity.device,
            wake_delivery,
            self.link.up_s,
        )
        self.console = KitConsole(
            registry.add_concern(ConsoleStatus, name),
            outbox,
            self._identity.device,
            wake_delivery,
            store_events=self.events.store,
            keep_dump=store.keep_dump,
        )
        self.recent = registry.recent(name)
        self._positions = KitPositions(
            registry.add_concern(LocationStatus, name), self.link, self._store
        )
        self._updates = KitUpdates(
            registry.add_concern(FotaStatus, name), self.link, self.console, self._store
        )
        self._client = self._speaking_for_kit(client)
        self._port_tasks: list[asyncio.Task[None]] = []
        self._service_tasks: list[asyncio.Task[None]] = []
        self._connection = KitConnection(
            self.link,
            self.console,
            self._updates,
            self._identity,
            self._store,
            self.recent,
            lambda: self.profile,
            lambda: self._client.keyring,
        )
        self._connect_parts()
        registry.subscribe(name, self.events.add)

    def _connect_parts(self) -> None:
        """Set the callbacks between the parts; the connection has set those that lead to itself."""
        self.link.ports.append(self.console.held_port)
        self.link.on_steps = self.recent.add_steps
        self.link.on_new_software = self._identity.forget_software
        # Of any kit, unless the profile names one: a silent one does not tell which it is.
        self.link.owed_bytes = lambda: owed_bytes(self._store.state_dir, self.settings.device_id)
        self.console.watchers.recent = self.recent
        self._connection.on_other = self._forget
        self._connection.on_retry = self._try_again

    @property
    def settings(self) -> KitSettings:
        """The kit's part of the profile; a reload that changes it makes another `KitAgent`."""
        return self.profile.kit

    def start(self) -> None:
        """Start all tasks: those of the ports and those that need the services."""
        link, console = self.link, self.console
        self._port_tasks.append(asyncio.create_task(supervise(link.concern, link.run)))
        if self.settings.console_port == "none":
            console.held_port.name = ""
            console.concern.set_off("kit.console_port is none")
        else:
            work = partial(console.run, self.settings)
            supervised = supervise(console.concern, work, longest_s=_CONSOLE_WAIT_S)
            self._port_tasks.append(asyncio.create_task(supervised))
        self._start_service_tasks()

    def concerns(self) -> list[KitConcern]:
        """Return the status of each of its concerns, which changes as the kit goes on."""
        return [
            self.link.concern.status,
            self.console.concern.status,
            self.events.concern.status,
            self._positions.concern.status,
            self._updates.concern.status,
        ]

    async def reconfigure(self, profile: Profile, client: HttpClient) -> None:
        """Use another profile or other credentials from now on, over the same link."""
        # An installation that is under way may finish; one that is broken off is resumed.
        with suppress(KitBusy):
            async with self.link.exclusive("a reload", patience_s=_RELOAD_S):
                await _end(self._service_tasks)
        await _end(self._service_tasks)
        self.profile = profile
        self._client = self._speaking_for_kit(client)
        self._start_service_tasks()

    def _start_service_tasks(self) -> None:
        positions, updates, events = self._positions, self._updates, self.events
        longest = max(60.0, min(900.0, self.profile.location.interval_s))
        profile, client = self._profile_with_id, self._client
        locating = partial(positions.run, profile, client, lambda: self._connection.contact)
        updating = partial(updates.run, profile, client)
        telling = partial(events.run, self.profile, client.keyring)
        self._service_tasks = [
            asyncio.create_task(supervise(positions.concern, locating, longest_s=longest)),
            asyncio.create_task(supervise(updates.concern, updating)),
            asyncio.create_task(supervise(events.concern, telling)),
        ]

    def keep_house(self) -> None:
        """Do what is due by the time alone, now and then."""
        self._connection.end_old_doubt()

    def service_is_back(self) -> None:
        """Do at once what waited for a service, beyond what the concerns' tasks wait for."""
        self._positions.service_is_back()

    async def stop(self) -> None:
        """End everything; the ports are closed, and the modem is as it was found."""
        await _end(self._service_tasks)
        await _end(self._port_tasks)
        await self.console.close()
        with suppress(AgentError):  # the disk is full: as after a kill
            self._store.update(online=False)
        await self.events.store()

    async def type_line(self, line: str) -> list[str]:
        """Write a line to the console, as a person would; return what a modem answers to it.

        Raises KitAway, KitBusy, AtError.
        """
        if self.console.port:
            if self.console.write is None:
                raise KitAway("the kit's console is not open", hint="`cellagent status` says why")
            self.console.write(line.encode() + b"\r")
            return []
        async with self.link.exclusive("a line is typed", patience_s=EXCLUSIVE_WAIT_S):
            modem = await self.link.wait_available()
            if line[:2].upper() != "AT":
                await modem.type_line(line)  # to a shell, which answers in console lines
                return []
            answer = await modem.execute(line, timeout_s=_TYPED_S)
            return [*answer.lines, answer.final or ""]

    # --- called by the parts of the kit

    def _forget(self) -> None:
        """Forget what each part knows of the kit that was here before this one."""
        self._client.keyring.forget()
        self.console.forget()
        self.events.forget()
        self._positions.forget()
        self._updates.forget()

    def _try_again(self) -> None:
        self._updates.try_again()
        self._positions.try_again()

    async def _serve(self, modem: Modem) -> None:
        await self._connection.serve(modem)

    def _profile_with_id(self) -> Profile:
        """Return the profile with the kit's id at the device cloud, as far as it is known."""
        device_id = self.settings.device_id or self._store.record.device_id
        kit = msgspec.structs.replace(self.settings, device_id=device_id)
        return msgspec.structs.replace(self.profile, kit=kit)

    @property
    def device_id(self) -> str:
        """The id under which the kit's items are in the outbox, "" while it is not known."""
        return self.settings.device_id or self._store.record.known_id

    def _speaking_for_kit(self, client: HttpClient) -> HttpClient:
        own_token = ModemJwt(self._ask_modem, self.settings.device_id)
        return client.acting_as(
            own_token, kit_gate=self._require_firmware, on_exchange=self._on_exchange
        )

    def _on_exchange(self, what: str, status: int, seconds: float, answered: bool) -> None:
        told = f"{status}, {1000 * seconds:.0f} ms" if status else "no answer"
        self.recent.add(HTTP, f"{what} {told}", "" if answered else "error")

    async def _require_firmware(self) -> None:
        await require_firmware(await self.link.wait_available())

    async def _ask_modem(self, subject: str, life_s: int) -> Jwt:
        tag = self.profile.provisioning.security_tag
        return await ask_modem(await self.link.wait_available(), tag)(subject, life_s)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    await cancel_and_wait(*tasks)
    tasks.clear()
