"""One kit: its link, console, position and updates, wired together."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from agent.auth.modem_jwt import ModemJwt, ask_modem
from agent.console.fault_lines import RestartCounter
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.events import KitEvents
from agent.daemon.kit.first_contact import SETTLE_S, Told, findings, meet, watch_registration
from agent.daemon.kit.identity import KitMemory, KitNames
from agent.daemon.kit.link import TURN_S, KitAway, KitBusy, KitLink
from agent.daemon.kit.positions import Positions
from agent.daemon.kit.updates import Updates
from agent.daemon.own_events import Happening
from agent.daemon.supervisor import supervise
from agent.tasks import cancel_and_wait, first_of, wait_for_event
from at.ports.usb import model_at
from at.transport.base import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from agent.config import Profile
    from agent.config.profile import KitSettings
    from agent.daemon.kit.first_contact import Contact
    from agent.daemon.status import Board
    from agent.http import HttpClient
    from agent.outbox import Outbox
    from at.driver.modem import Modem


_TYPED_S = 60.0  # for the answer to a command that a person typed


class Borrower(Receiver, Protocol):
    """Another process that wants to speak to the modem."""

    async def say(self, answer: dict[str, Any]) -> None:
        """Tell it that its turn has come."""

    async def write_through(self, write: Callable[[bytes], None]) -> None:
        """Pass on what it writes, until it closes."""


class Lending:
    """The kit in the hands of others, in turns."""

    def __init__(self, name: str, link: KitLink, console: KitConsole) -> None:
        self._name = name
        self._link = link
        self._console = console
        self.is_lent = False
        """Whether what the modem says now is for a borrower."""

    async def lend(self, borrower: Borrower, who: str) -> None:
        """Let another process speak to the modem until it closes. Raises KitAway, KitBusy."""
        async with self._link.undisturbed(f"lent to {who}", patience_s=TURN_S):
            modem = self._link.available()
            await borrower.say(
                {
                    "ok": True,
                    "kit": self._name,
                    "dialect": modem.dialect.value,
                    "terminator": modem.terminator.value,
                }
            )
            self.is_lent = True
            try:
                await modem.pass_through(borrower, borrower.write_through)
            finally:
                self.is_lent = False

    async def type_line(self, line: str) -> list[str]:
        """Write a line to the console, as a person would; return what a modem answers to it.

        Raises KitAway, KitBusy, AtError.
        """
        if self._console.port:
            if self._console.write is None:
                raise KitAway("the kit's console is not open", hint="`cellagent status` says why")
            self._console.write(line.encode() + b"\r")
            return []
        async with self._link.undisturbed("a line is typed", patience_s=TURN_S):
            modem = self._link.available()
            if line[:2].upper() != "AT":
                await modem.type_line(line)  # to a shell: what it says comes as console lines
                return []
            answer = await modem.execute(line, timeout_s=_TYPED_S)
            return [*answer.lines, answer.final or ""]


LOOK_S = 60.0
"""Between two looks at a kit that says nothing: a dead link shows within this time."""
_RELOAD_S = 10.0  # that a reload waits for whoever has the kit
_CONSOLE_WAIT_S = 5.0  # the longest between two tries to open a console


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.ensure_future(work)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    await cancel_and_wait(*tasks)
    tasks.clear()


class KitAgent:
    """Looks after one kit, from `start` to `stop`."""

    def __init__(
        self,
        name: str,
        profile: Profile,
        client: HttpClient,
        *,
        board: Board,
        outbox: Outbox,
        state_dir: Path,
        wake_delivery: Callable[[], None],
    ) -> None:
        """`profile.kit` is this kit; `client` has the credentials that are not the kit's own."""
        self.name = name
        self.profile = profile
        self.contact: Contact | None = None
        self._memory = KitMemory(state_dir, name)
        self._told = Told()
        self._names = KitNames(name, lambda: self.kit, self._memory)
        self.link = KitLink(profile.kit, board.concern("link", name), self._serve)
        self.console = KitConsole(
            board.concern("console", name),
            outbox,
            self._names.device,
            wake_delivery,
            restarted=self._restarted,
        )
        self.link.ports.append(self.console.kept)
        self.lending = Lending(name, self.link, self.console)
        self.events = KitEvents(
            board.concern("events", name),
            outbox,
            self._names.device.identity,
            wake_delivery,
            self.link.up_s,
        )
        self.link.on_new_software = self._names.new_software
        board.listen(name, self.events.take)
        self._restarts = RestartCounter()
        self._positions = Positions(board.concern("location", name), self.link, self._memory)
        self._updates = Updates(board.concern("fota", name), self.link, self.console, state_dir)
        self._client = client.acting_as(ModemJwt(self._ask_modem, profile.kit.device_id))
        self._tasks: list[asyncio.Task[None]] = []
        self._calls: list[asyncio.Task[None]] = []
        if self._memory.known.device_id:
            self.link.concern.learn(device_id=self._memory.known.device_id)

    @property
    def kit(self) -> KitSettings:
        """The kit's part of the profile."""
        return self.profile.kit

    def start(self) -> None:
        """Begin with everything."""
        link, console = self.link, self.console
        self._tasks.append(_task(supervise(link.concern, link.run)))
        if self.kit.console_port == "none":
            console.kept.name = ""
            console.concern.off("kit.console_port is none")
        else:
            work = partial(console.run, self.kit)
            self._tasks.append(_task(supervise(console.concern, work, longest_s=_CONSOLE_WAIT_S)))
        self._start_calls()

    async def go_on_with(self, profile: Profile, client: HttpClient) -> None:
        """Work with another profile or other credentials from now on, over the same link."""
        # An installation that is under way may come to its end; broken off, it is gone on with.
        with suppress(KitBusy):
            async with self.link.undisturbed("a reload", patience_s=_RELOAD_S):
                await _end(self._calls)
        await _end(self._calls)
        self.profile = profile
        self._client = client.acting_as(ModemJwt(self._ask_modem, self.kit.device_id))
        self._start_calls()

    def _start_calls(self) -> None:
        """Begin with what needs the services."""
        positions, updates, events = self._positions, self._updates, self.events
        longest = max(60.0, min(900.0, self.profile.location.interval_s))
        work = partial(positions.run, self._named, self._client, self._refusal)
        self._calls = [
            _task(supervise(positions.concern, work, longest_s=longest)),
            _task(supervise(updates.concern, partial(updates.run, self._named, self._client))),
            _task(
                supervise(events.concern, partial(events.run, self._named, self._client.keyring))
            ),
        ]

    async def stop(self) -> None:
        """End everything; the ports are closed, and the modem is as it was found."""
        await _end(self._calls)
        await _end(self._tasks)
        await self.events.close()

    # --- one connection

    async def _serve(self, modem: Modem) -> None:
        """Get to know the kit, then look after the link until it is lost."""
        modem.on_restart = self._restarted
        self._names.plugged_in(await asyncio.to_thread(model_at, self.kit.port))
        with modem.lines() as lines:
            works = [self._meet_and_mind(modem)]
            if self.kit.console_port != "none":
                works.append(
                    self.console.hear(lines, self.link.at_port, lambda: self.lending.is_lent)
                )
            try:
                await first_of(*works)
            finally:
                # What a kit lacks that is away is not to be put right now.
                self.link.concern.learn(findings=None)

    async def _meet_and_mind(self, modem: Modem) -> None:
        with modem.notices("+CEREG") as registration:
            await self._meet(modem)
            await watch_registration(modem)
            self.link.ready(modem)
            self._updates.link_is_up()
            self._positions.link_is_up()
            moved = asyncio.Event()

            async def hear() -> None:
                async for _ in registration:
                    moved.set()

            async def mind() -> None:
                while True:
                    await wait_for_event(moved, SETTLE_S if self._told.unsettled else LOOK_S)
                    moved.clear()
                    await self._meet(modem)

            await first_of(hear(), mind())

    async def _meet(self, modem: Modem) -> None:
        contact = self.contact = await meet(modem, self.kit.device_id)
        self._names.met(contact)
        missing = findings(contact, self._client.keyring)
        new, settled = self._told.news(missing, time.monotonic())
        for finding in new:
            self.link.concern.tell(logging.WARNING, str(finding))
        for finding in settled:
            self.link.concern.tell(logging.INFO, f"settled: {finding.what}")
        self.link.concern.learn(
            dialect=modem.dialect.value,
            terminator=modem.terminator.value,
            baud=self.kit.baud,
            firmware=contact.verdict.text or None,
            allowed=contact.verdict.allowed,
            device_id=contact.device_id or None,
            application=contact.application or None,
            imei=contact.told("imei"),
            model=contact.told("model"),
            registration=contact.told("registration"),
            time=contact.told("time"),
            findings=[{"what": each.what, "try": each.way_out or None} for each in missing] or None,
        )

    def _restarted(self, line: str) -> None:
        """Hear, on one port or the other, a line by which the kit says that it starts."""
        if not self._restarts.is_new(line, time.monotonic()):
            return
        self.link.concern.learn(restarts=self._restarts.count)
        # One that is being plugged in starts, too; one that is updated starts anew.
        if self.link.modem is not None and not self.link.expects_restart:
            who = f" ({self.link.busy_with})" if self.link.busy_with else ""
            self.link.concern.happened(Happening.MODEM_RESET, f"the kit said {line!r}{who}")

    # --- what the parts ask

    def _refusal(self) -> str:
        return "" if self.contact is None else self.contact.refusal

    def _named(self) -> Profile:
        """Return the profile with the kit's id at the device cloud, as far as it is known."""
        known = self.kit.device_id or self._memory.known.device_id
        kit = msgspec.structs.replace(self.kit, device_id=known)
        return msgspec.structs.replace(self.profile, kit=kit)

    async def _ask_modem(self, subject: str, life_s: int) -> str:
        tag = self.profile.provisioning.security_tag
        return await ask_modem(await self.link.soon(), tag)(subject, life_s)
