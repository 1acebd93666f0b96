"""One kit: its link, console, events, positions and updates, wired together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from agent.auth.modem_jwt import ModemJwt, ask_modem
from agent.config import Profile
from agent.config.profile import KitSettings
from agent.console.fault_lines import RestartCounter
from agent.daemon.kit import first_contact
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.credentials import KitCredentials
from agent.daemon.kit.events_and_heartbeat import KitEvents
from agent.daemon.kit.identity import KitIdentity, KitStore
from agent.daemon.kit.keep_online import KeepState, OnlineKeeper
from agent.daemon.kit.link import EXCLUSIVE_WAIT_S, KitAway, KitBusy, KitLink
from agent.daemon.kit.positions import KitPositions
from agent.daemon.kit.readings import KitReadings
from agent.daemon.kit.updates import KitUpdates
from agent.daemon.snapshot import (
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    KitConcern,
    LikelyCause,
    LinkStatus,
    LocationStatus,
)
from agent.daemon.status import AgentEventKind, StatusRegistry
from agent.daemon.supervisor import supervise
from agent.errors import AgentError
from agent.http import HttpClient
from agent.outbox import Outbox
from agent.tasks import cancel_and_wait, first_of, wait_for_event
from agent.wiring.update_runner import owed_bytes
from at.commands.functional_mode import LTE_MODES, OFF_MODES, FunctionalMode, SetFunctionalMode
from at.driver.modem import Modem
from at.firmware_gate import require_firmware
from at.ports.usb import usb_kit_at
from at.protocol.errors import CommandRejected
from at.tokens.jwt import Jwt

CHECK_S = 60.0
"""Between two checks of a kit that sends nothing: a dead link shows within this time."""
_RESET_LOOP = "RESET LOOP"
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
        state_dir: Path,
        wake_delivery: Callable[[], None],
    ) -> None:
        """`profile.kit` is this kit; `client` has the credentials that are not the kit's own."""
        self.name = name
        self.profile = profile
        self.contact: first_contact.Contact | None = None
        self._store = KitStore(state_dir, name)
        self._identity = KitIdentity(
            name,
            lambda: self.settings,
            self._store,
            lambda unnamed, device: outbox.submit(lambda s: s.name_device(unnamed, device)),
        )
        self._credentials = KitCredentials(self._store)
        self._findings = first_contact.FindingTracker()
        self._restarts = RestartCounter()
        self._readings = KitReadings()
        self._keeper = OnlineKeeper(was_on=self._store.record.online)
        self._asked_off = False
        """Whether somebody turned the modem off through the agent since it was last looked at."""
        self._look_again = asyncio.Event()
        self.link = KitLink(profile.kit, registry.add_concern(LinkStatus, name), self._serve)
        self.console = KitConsole(
            registry.add_concern(ConsoleStatus, name),
            outbox,
            self._identity.device,
            wake_delivery,
            on_restart=self._on_restart,
            store_events=self._store_events,
        )
        self.link.ports.append(self.console.held_port)
        self.events = KitEvents(
            registry.add_concern(EventsStatus, name),
            outbox,
            self._identity.device,
            wake_delivery,
            self.link.up_s,
        )
        self.link.on_new_software = self._identity.forget_software
        self.link.on_mode_asked = self._on_mode_asked
        registry.subscribe(name, self.events.add)
        self._positions = KitPositions(
            registry.add_concern(LocationStatus, name), self.link, self._store
        )
        self._updates = KitUpdates(
            registry.add_concern(FotaStatus, name), self.link, self.console, self._store
        )
        self.link.owed_bytes = lambda: owed_bytes(state_dir, self._profile_with_id().kit.device_id)
        self._client = self._speaking_for_kit(client)
        self._port_tasks: list[asyncio.Task[None]] = []
        self._service_tasks: list[asyncio.Task[None]] = []
        self._show_id()

    @property
    def settings(self) -> KitSettings:
        """The kit's part of the profile."""
        return self.profile.kit

    def start(self) -> None:
        """Start all tasks: those of the ports and those that need the services."""
        link, console = self.link, self.console
        self._port_tasks.append(_task(supervise(link.concern, link.run)))
        if self.settings.console_port == "none":
            console.held_port.name = ""
            console.concern.set_off("kit.console_port is none")
        else:
            work = partial(console.run, self.settings)
            supervised = supervise(console.concern, work, longest_s=_CONSOLE_WAIT_S)
            self._port_tasks.append(_task(supervised))
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
        work = partial(
            positions.run, self._profile_with_id, self._client, self._refusal, self._is_registered
        )
        self._service_tasks = [
            _task(supervise(positions.concern, work, longest_s=longest)),
            _task(
                supervise(
                    updates.concern, partial(updates.run, self._profile_with_id, self._client)
                )
            ),
            _task(
                supervise(
                    events.concern, partial(events.run, self._profile_with_id, self._client.keyring)
                )
            ),
        ]

    def service_is_back(self) -> None:
        """Do at once what waited for a service, beyond what the concerns' tasks wait for."""
        self._positions.service_is_back()

    async def stop(self) -> None:
        """End everything; the ports are closed, and the modem is as it was found."""
        await _end(self._service_tasks)
        await _end(self._port_tasks)
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
            modem = self.link.available()
            if line[:2].upper() != "AT":
                await modem.type_line(line)  # to a shell, which answers in console lines
                return []
            answer = await modem.execute(line, timeout_s=_TYPED_S)
            return [*answer.lines, answer.final or ""]

    # --- one connection

    async def _serve(self, modem: Modem) -> None:
        """Look after one connection until it is lost; the modem is available once contacted."""
        modem.on_restart = self._on_restart
        self._credentials.expect_loss()
        self._identity.set_usb(await asyncio.to_thread(usb_kit_at, self.settings.port))
        self._show_id()
        with modem.lines() as lines:
            works = [self._contact_and_check(modem)]
            if self.settings.console_port != "none":
                works.append(
                    self.console.read_at_port(lines, self.link.at_port, lambda: self.link.is_leased)
                )
            try:
                await first_of(*works)
            finally:
                # It may restart where it is; nothing can be done about its findings there.
                self._keeper.restarted(time.monotonic(), is_boot=False)
                with self.link.concern.changing() as status:
                    status.findings = None

    async def _contact_and_check(self, modem: Modem) -> None:
        """Make the first contact, then check the kit at a change of registration and at times."""
        with modem.notices("+CEREG", "%MDMEV") as notices:
            await self._check(modem)
            await first_contact.enable_registration_notices(modem)
            self.link.ready(modem)
            self._updates.link_is_up()
            self._positions.link_is_up()

            async def receive_notices() -> None:
                async for notice in notices:
                    if notice.name != "%MDMEV":
                        self._look_again.set()
                    elif _RESET_LOOP in notice.line:
                        self._keeper.protects_itself = True
                        self._look_again.set()

            async def check_again() -> None:
                while True:
                    await wait_for_event(self._look_again, self._next_check_s())
                    self._look_again.clear()
                    await self._check(modem)
                    await self._read(modem)

            await self._read(modem)
            await first_of(receive_notices(), check_again(), self._readings.follow_sleep(modem))

    async def _read(self, modem: Modem) -> None:
        """Read signal, supply and temperature, if nobody has the kit and its modem is awake."""
        mode = None if self.contact is None else self.contact.value("functional_mode")
        if self.link.is_free and mode in LTE_MODES and self._readings.is_due():
            cell = await self._readings.read(modem)
            with self.link.concern.changing() as status:
                status.cell, status.history = cell, self._readings.history
                status.reading = status.history[-1]

    def _next_check_s(self) -> float:
        if self._keeper.state is KeepState.SETTLING:
            return max(1.0, min(CHECK_S, self.settings.settle_s))
        return first_contact.SETTLE_S if self._findings.has_unreported else CHECK_S

    async def _keep_online(self, modem: Modem, contact: first_contact.Contact) -> None:
        """Turn the modem on again where a restart left it off and `kit.keep_online` wants it on."""
        keeper, now, policy = self._keeper, time.monotonic(), self.settings.keep_online
        mode = contact.number("functional_mode")
        if contact.is_registered:
            keeper.protects_itself = False
        if policy == "never" or mode is None:
            return
        if self.link.expects_restart:  # the update puts it back itself
            keeper.restarted(now, is_boot=False)
        else:
            keeper.seen(now, is_on=mode in LTE_MODES, policy=policy, asked_off=self._asked_off)
        if keeper.is_turn_due(now, self.settings.settle_s):
            self.link.concern.log(
                logging.INFO, f"the modem is off: turned on (kit.keep_online = {policy})"
            )
            with suppress(CommandRejected):  # it is told as off, and why
                await modem.send(SetFunctionalMode(FunctionalMode.NORMAL))
            self._look_again.set()
        self._store.update(online=keeper.is_to_be_on)

    async def _check(self, modem: Modem) -> None:
        """Read everything about the kit, log what it lacks and show all in the status."""
        before = self.contact
        was_asked_off = self._asked_off
        contact = self.contact = await first_contact.read_contact(
            modem, self.settings.device_id, before
        )
        self._identity.update(contact)
        self._show_id()
        if contact.verdict.allowed:
            tag = self.profile.provisioning.security_tag
            await self._credentials.check(modem, tag)
        await self._keep_online(modem, contact)
        if was_asked_off:  # else it may have been read before it was turned off
            self._asked_off = False
        found = (
            *self._identity.findings(),
            *self._updates.findings(is_back=contact.is_registered),
            *self._keeper.findings(time.monotonic()),
            *self._credentials.findings,
            *first_contact.findings(contact, self._client.keyring),
        )
        missing = [
            msgspec.structs.replace(each, hint=each.hint and self.link.concern.pasteable(each.hint))
            for each in found
        ]
        if before is not None and contact.is_registered and not before.is_registered:
            for concern in (self._positions.concern, self._updates.concern):
                concern.wake.set()  # what failed without the network does not wait for its turn
        new, settled = self._findings.update(missing, time.monotonic())
        for finding in new:
            self.link.concern.log(logging.WARNING, str(finding))
        for finding in settled:
            self.link.concern.log(logging.INFO, f"settled: {finding.what}")
        with self.link.concern.changing() as status:
            status.dialect = modem.dialect.value
            status.terminator = modem.terminator.value
            status.baud = self.settings.baud
            status.firmware = contact.verdict.text or None
            status.allowed = contact.verdict.allowed
            status.application = contact.application or None
            status.imei = contact.text("imei")
            status.model = contact.text("model")
            status.registration = contact.number("registration")
            status.time = contact.text("time")
            status.findings = self._findings.shown or None
            status.cause = None if contact.cause is None else LikelyCause(**contact.cause.to_json())

    def _on_mode_asked(self, mode: int) -> None:
        self._asked_off = mode in OFF_MODES
        self._look_again.set()

    def _on_restart(self, line: str) -> None:
        """Count a restart that the kit announces on one of its ports; publish it if unexpected."""
        if not self._restarts.is_new(line, time.monotonic()):
            return
        self._credentials.expect_loss()
        self._keeper.restarted(time.monotonic(), is_boot=not self.link.expects_restart)
        self._look_again.set()
        with self.link.concern.changing() as status:
            status.restarts = self._restarts.count
        # A kit that is plugged in starts, too; one that is updated restarts as part of it.
        if self.link.modem is not None and not self.link.expects_restart:
            busy_with = self.link.concern.status.busy_with
            during = f" ({busy_with})" if busy_with else ""
            self.link.concern.publish(AgentEventKind.MODEM_RESET, f"the kit said {line!r}{during}")

    def _show_id(self) -> None:
        with self.link.concern.changing() as status:
            status.device_id = self._identity.device_id or None
            status.device_id_from = self._identity.origin

    # --- called by the parts of the kit

    async def _store_events(self) -> None:
        await self.events.store()

    def _refusal(self) -> str:
        return "" if self.contact is None else self.contact.refusal

    def _is_registered(self) -> bool:
        return self.contact is None or self.contact.is_registered

    def _profile_with_id(self) -> Profile:
        """Return the profile with the kit's id at the device cloud, as far as it is known."""
        device_id = self.settings.device_id or self._store.record.device_id
        kit = msgspec.structs.replace(self.settings, device_id=device_id)
        return msgspec.structs.replace(self.profile, kit=kit)

    def _speaking_for_kit(self, client: HttpClient) -> HttpClient:
        own_token = ModemJwt(self._ask_modem, self.settings.device_id)
        return client.acting_as(own_token, kit_gate=self._require_firmware)

    async def _require_firmware(self) -> None:
        await require_firmware(await self.link.wait_available())

    async def _ask_modem(self, subject: str, life_s: int) -> Jwt:
        tag = self.profile.provisioning.security_tag
        return await ask_modem(await self.link.wait_available(), tag)(subject, life_s)


def _task(work: Coroutine[object, None, None]) -> asyncio.Task[None]:
    return asyncio.ensure_future(work)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    await cancel_and_wait(*tasks)
    tasks.clear()
