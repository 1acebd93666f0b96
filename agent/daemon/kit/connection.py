"""The connection to a kit's modem: the first contact, then looks at it until it is lost."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from agent.auth.credential import Keyring
from agent.config import Profile
from agent.console.fault_lines import RestartCounter
from agent.daemon.kit import first_contact
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.credentials import KitCredentials
from agent.daemon.kit.identity import KitIdentity
from agent.daemon.kit.keep_online import KeepState, OnlineKeeper
from agent.daemon.kit.link import KitLink
from agent.daemon.kit.provisioning import KitProvisioning
from agent.daemon.kit.readings import KitReadings
from agent.daemon.kit.store import KitStore
from agent.daemon.kit.updates import KitUpdates
from agent.daemon.recent import NETWORK, RecentMoments
from agent.daemon.snapshot import Finding, LikelyCause
from agent.daemon.status import AgentEventKind
from agent.tasks import first_of, wait_for_event
from at.causes.diagnosis import Cause
from at.checkup import REGISTRATION
from at.commands.clock import read_clock
from at.commands.functional_mode import LTE_MODES, OFF_MODES, FunctionalMode, SetFunctionalMode
from at.driver.modem import Modem
from at.ports.usb import usb_kit_at
from at.protocol.errors import CommandRejected

CHECK_S = 60.0
"""Between two checks of a kit that sends nothing: a dead link shows within this time."""
_PAUSE_S = 1.0  # from one check to the next, of a kit that sends notices without end
_RESET_LOOP = "RESET LOOP"


@dataclass
class KitConnection:
    """The modem of one kit, each time that it is opened until it is lost.

    `profile` and `keyring` return those that are in effect.
    """

    link: KitLink
    console: KitConsole
    updates: KitUpdates
    identity: KitIdentity
    store: KitStore
    recent: RecentMoments
    profile: Callable[[], Profile]
    keyring: Callable[[], Keyring]

    def __post_init__(self) -> None:
        self.on_other: Callable[[], None] = lambda: None
        """Is called when another kit than before is here, and nothing is known of it yet."""
        self.on_retry: Callable[[], None] = lambda: None
        """Is called when what failed may be tried again: the kit is back, or a person was at it."""
        self.contact: first_contact.Contact | None = None
        self._settings = self.link.settings
        self._credentials = KitCredentials(self.store)
        self._findings = first_contact.FindingTracker()
        self._restarts = RestartCounter()
        self._readings = KitReadings()
        self._keeper = OnlineKeeper(was_on=self.store.record.online)
        self._provisioning = KitProvisioning(self.link, self._on_provisioned)
        self._served: Modem | None = None
        """The last one that answered when its port was opened."""
        self._asked_off = False
        """Whether somebody turned the modem off through the agent since it was last looked at."""
        self._look_again = asyncio.Event()
        self.identity.on_names = self._look_again.set
        self.identity.on_doubt = self.console.doubt
        self.identity.on_other = self._forget
        self.link.on_mode_asked = self._on_mode_asked
        self.link.on_given_back = self._on_given_back
        self.link.on_closed = self._store_rest
        self.console.on_open = self._on_console_open
        self.console.on_restart = self.restarted
        self.show_id()

    async def serve(self, modem: Modem) -> None:
        """Look after one connection until it is lost; the modem is available once contacted."""
        self._served = modem
        modem.on_restart = self.restarted
        self._credentials.expect_loss()
        await self._doubt_kit()
        with modem.lines() as lines:
            works = [self._contact_and_check(modem)]
            if self._settings.console_port != "none":
                link = self.link
                works.append(self.console.read_at_port(lines, link.at_port, lambda: link.is_leased))
            try:
                await first_of(*works)
            finally:
                # It may restart where it is; nothing can be done about its findings there.
                self._keeper.restarted(time.monotonic(), is_boot=False)
                self._show_no_reading()
                with self.link.concern.changing() as status:
                    status.findings = None

    async def _doubt_kit(self) -> None:
        """Doubt that the kit is the one of before, until it has answered, unless USB tells it."""
        usb = await asyncio.to_thread(usb_kit_at, self._settings.port)
        self.identity.set_usb(usb, time.monotonic())
        self.show_id()

    async def _store_rest(self, modem: Modem) -> None:
        """Store what the kit printed while its modem was put back: it does not print it again.

        Of one that gave no answer, as while it starts, that is all that it printed.
        """
        if self._settings.console_port != "none":
            with modem.lines() as lines:
                rest = lines.take()
                if rest and modem is not self._served:
                    await self._doubt_kit()
                await self.console.read_rest(rest)

    async def _contact_and_check(self, modem: Modem) -> None:
        """Make the first contact, then check the kit at a change of registration and at times."""
        with modem.notices("+CEREG", "%MDMEV") as notices:
            await self._check(modem)
            await first_contact.enable_registration_notices(modem)
            self.link.ready(modem)
            self.on_retry()

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
                    if self._provisioning.is_active:
                        continue  # its mode is the kit's own wish, and no finding
                    await self._check(modem)
                    await self._read(modem)
                    await asyncio.sleep(_PAUSE_S)

            await self._read(modem)
            await first_of(
                receive_notices(),
                check_again(),
                self._readings.follow_sleep(modem),
                self._provisioning.serve(modem),
            )

    def _forget(self) -> None:
        """Forget what was known of the kit that was here before this one."""
        self.link.concern.log(
            logging.INFO, f"another kit than before is here: {self.identity.device_id}"
        )
        self.link.swaps.notify_changed()
        self._keeper = OnlineKeeper(was_on=False)
        self._readings.forget()
        self._restarts.count = 0  # what its lines tell of the start that is under way is kept
        self._credentials = KitCredentials(self.store)
        self._provisioning.findings = ()
        with self.link.concern.changing() as status:
            status.history, status.restarts = [], 0
        self.on_other()

    async def _read(self, modem: Modem) -> None:
        """Read signal, supply and temperature, if nobody has the kit and its modem is awake."""
        mode = None if self.contact is None else self.contact.value("functional_mode")
        if mode not in LTE_MODES:
            self._show_no_reading()
        elif self.link.is_free and self._readings.is_due():
            cell = await self._readings.read(modem)
            with self.link.concern.changing() as status:
                status.cell, status.history = cell, self._readings.history
                status.reading = status.history[-1]

    def _show_no_reading(self) -> None:
        """Show none: the last one, which the history keeps, says nothing of now."""
        with self.link.concern.changing() as status:
            status.cell = status.reading = None

    def _next_check_s(self) -> float:
        if self._keeper.state is KeepState.SETTLING:
            return max(1.0, min(CHECK_S, self._settings.settle_s))
        return first_contact.SETTLE_S if self._findings.has_unreported else CHECK_S

    async def _keep_online(self, modem: Modem, contact: first_contact.Contact) -> None:
        """Turn the modem on again where a restart left it off and `kit.keep_online` wants it on."""
        keeper, now, policy = self._keeper, time.monotonic(), self._settings.keep_online
        if contact.is_registered:
            keeper.protects_itself = False
        if policy == "never" or contact.number("functional_mode") is None:
            return
        if self.link.expects_restart:  # the update puts it back itself
            keeper.restarted(now, is_boot=False)
        else:
            is_on = not contact.is_off
            keeper.seen(now, is_on=is_on, policy=policy, asked_off=self._asked_off)
        if keeper.is_turn_due(now, self._settings.settle_s):
            self.link.concern.log(
                logging.INFO, f"the modem is off: turned on (kit.keep_online = {policy})"
            )
            with suppress(CommandRejected):  # it is told as off, and why
                await modem.send(SetFunctionalMode(FunctionalMode.NORMAL))
            self._look_again.set()
        self.store.update(online=keeper.is_to_be_on)

    async def _check(self, modem: Modem) -> None:
        """Read everything about the kit, log what it lacks and show all in the status."""
        before = self.contact
        was_asked_off = self._asked_off
        contact = self.contact = await first_contact.read_contact(
            modem, self._settings.device_id, time.monotonic(), before
        )
        self.identity.update(contact)
        self.show_id()
        if contact.verdict.allowed:
            tag = self.profile().provisioning.security_tag
            await self._credentials.check(modem, tag)
        if before is not None and before.is_off and not contact.is_off:
            await first_contact.enable_registration_notices(modem)  # functional mode 0 ended them
            self._look_again.set()  # it may have registered before
        await self._keep_online(modem, contact)
        settle_s = self._settings.settle_s if self._settings.keep_online != "never" else None
        if was_asked_off:  # else it may have been read before it was turned off
            self._asked_off = False
        missing = (
            *self.identity.findings(),
            *self.updates.findings(is_back=contact.is_registered),
            *self._keeper.findings(time.monotonic()),
            *self._credentials.findings,
            *self._provisioning.findings,
            *first_contact.findings(
                contact, self.keyring(), settle_s if self._keeper.is_to_be_turned_on else None
            ),
        )
        if before is not None and contact.is_registered and not before.is_registered:
            self.on_retry()  # what failed without the network does not wait for its turn
        self._tell(missing)
        self._show(modem, contact)

    def _tell(self, missing: Iterable[Finding]) -> None:
        """Log what the kit lacks now, each once, and what is settled."""
        log, pasteable = self.link.concern.log, self.link.concern.pasteable
        found = [
            msgspec.structs.replace(each, hint=each.hint and pasteable(each.hint))
            for each in missing
        ]
        new, settled = self._findings.update(found, time.monotonic())
        for finding in new:
            log(logging.WARNING, str(finding))
        for finding in settled:
            log(logging.INFO, f"no longer: {finding.what}")

    def _show(self, modem: Modem, contact: first_contact.Contact) -> None:
        with self.link.concern.changing() as status:
            if (registration := contact.number("registration")) != status.registration:
                words = REGISTRATION.get(-1 if registration is None else registration, "not heard")
                self.recent.add(NETWORK, words)
            status.dialect = modem.dialect.value
            status.terminator = modem.terminator.value
            status.baud = self._settings.baud
            status.firmware = contact.verdict.text or None
            status.allowed = contact.verdict.allowed
            status.application = contact.application or None
            status.imei = contact.text("imei")
            status.model = contact.text("model")
            status.registration = registration
            clock = contact.text("time")
            status.time = clock and read_clock(clock).local_time.isoformat()
            status.findings = self._findings.shown or None
            status.cause = self._likely(contact.cause)

    def _likely(self, cause: Cause | None) -> LikelyCause | None:
        if cause is None:
            return None
        step = self.link.concern.pasteable(cause.next)
        return LikelyCause(**cause.to_json() | {"next": step})

    def _on_provisioned(self) -> None:
        self._credentials.expect_loss()
        self._look_again.set()
        self.on_retry()

    def _on_mode_asked(self, mode: int) -> None:
        self._asked_off = mode in OFF_MODES
        self._look_again.set()

    def _on_given_back(self) -> None:
        """Do what waited for the person, or the program, who had the modem to mend something."""
        self._credentials.expect_loss()
        self.on_retry()

    def restarted(self, line: str) -> None:
        """Count a restart that the kit announces on one of its ports; publish it if unexpected."""
        if not self._restarts.is_new(line, time.monotonic()):
            return
        self._credentials.expect_loss()
        self._keeper.restarted(time.monotonic(), is_boot=not self.link.expects_restart)
        self.identity.doubt_started(time.monotonic())  # `status` shows it as that of before
        self._look_again.set()
        fault = self.console.take_fault()
        with self.link.concern.changing() as status:
            status.restarts = self._restarts.count
        # A kit that is plugged in starts, too; one that is updated restarts as part of it.
        if self.link.modem is not None and not self.link.expects_restart:
            busy_with = self.link.concern.status.busy_with
            during = f" ({busy_with})" if busy_with else ""
            before = f", after a fault: {fault}" if fault else ""
            self.link.concern.publish(
                AgentEventKind.MODEM_RESET, f"the kit said {line!r}{during}{before}"
            )

    def _on_console_open(self) -> None:
        if self.link.modem is None:  # else the kit that prints there is known
            self.identity.doubt(time.monotonic())
            self.show_id()

    def end_old_doubt(self) -> None:
        """Take a kit whose modem does not answer for the one that was there before, in time."""
        if self.identity.end_old_doubt(time.monotonic()):
            self.show_id()

    def show_id(self) -> None:
        """Show the id of the kit in the status."""
        with self.link.concern.changing() as status:
            status.device_id = self.identity.device_id or None
            status.device_id_from = self.identity.origin
