"""The kit's position at an interval: stored with time and sources, reported when it changed."""

import logging
import random
from collections.abc import Callable, Mapping

import msgspec

from agent.cloud.messages import SendMessage
from agent.config import Profile
from agent.daemon.kit.first_contact import Contact
from agent.daemon.kit.link import KitLink
from agent.daemon.kit.store import KitStore
from agent.daemon.log_lines import differ_in_numbers_only
from agent.daemon.snapshot import HISTORY, HeardCell, LastPosition, LocationStatus, Phase, Place
from agent.daemon.status import Concern
from agent.errors import AgentError, Unavailable, with_hint
from agent.http import HttpClient
from agent.location.cell_scan import CellScan
from agent.location.locator import Fix, locator_for, moved, position_message
from agent.retry import NO_RETRY, spread_s, wait_asked_s
from agent.tasks import wait_for_event
from at.protocol.errors import AtError

_SOONEST_S = 60.0  # between two positions, where the service asks for a report sooner


class KitPositions:
    """The positions of one kit: the `kit` of a profile, with its id at the device cloud."""

    def __init__(self, concern: Concern[LocationStatus], link: KitLink, store: KitStore) -> None:
        self.concern = concern
        self._link = link
        self._store = store
        self._asked_s = 0.0
        """How long the service asked to wait until a report is tried again; 0 if it did not."""
        self._report_awaits_service = False
        with concern.changing() as status:
            status.position = _shown(store.record.position)

    async def run(
        self,
        profile: Callable[[], Profile],
        client: HttpClient,
        contacted: Callable[[], Contact | None],
    ) -> None:
        """Find the position at start, then at the interval: the work of the concern.

        `contacted` returns what the kit answered last. One that is not registered may be found by
        Wi-Fi; else it waits to be, which is the link's to tell.
        """
        interval = profile().location.interval_s
        if not interval:
            self.concern.set_off("location.interval_s is 0")
            return
        while True:
            await self._link.wait_up(self.concern)
            self.concern.begin_try()
            contact = contacted()
            if contact is not None and contact.refusal:
                self.concern.set_off("the modem's firmware is refused")
            else:
                await self._find_if_on_network(profile(), client, contacted)
            pause = pause_s(interval, self._asked_s)
            seconds = pause + spread_s(pause, random.random())  # noqa: S311
            self.concern.set_next_try(seconds)
            await wait_for_event(self.concern.wake, seconds)
            self.concern.wake.clear()

    def forget(self) -> None:
        """Find the position anew: it was another kit's."""
        with self.concern.changing() as status:
            status.position = status.unreported = status.unreported_hint = None
            status.track, status.neighbors = [], []
        self.concern.wake.set()

    def try_again(self) -> None:
        """Try at once what failed: the kit or the service is back, or a person mended something."""
        if self.concern.phase is not Phase.WELL or self.concern.status.unreported is not None:
            self.concern.wake.set()

    def service_is_back(self) -> None:
        """Report at once what could not be; a trouble is woken where it waits for a service."""
        if self.concern.phase is not Phase.TROUBLE and not self._asked_s:
            self.try_again()

    async def _find_if_on_network(
        self, profile: Profile, client: HttpClient, contacted: Callable[[], Contact | None]
    ) -> None:
        try:
            await self._link.while_same_kit(self.find(profile, client))
        except AgentError:
            contact = contacted()
            if contact is None or contact.may_be_registered:
                raise
            self._asked_s = 0.0  # nothing can be reported until the network wakes it
            self.concern.set_waiting("the kit to be on the network")
        else:
            self.concern.set_well()
            self.concern.awaits_service = self._report_awaits_service
            self.concern.wake.clear()  # what woke it meanwhile, as the network did, is done

    async def find(self, profile: Profile, client: HttpClient) -> None:
        """Find the position once and store it; report it to the device cloud if it changed."""
        modem = await self._link.wait_up(self.concern)
        locator = locator_for(profile, profile.kit, client, modem)
        scan = locator.scan_cells
        if scan is not None:

            async def exclusive_scan() -> CellScan:
                async with self._link.exclusive("a scan of cells"):
                    heard = await scan()
                with self.concern.changing() as status:
                    status.neighbors = msgspec.convert(heard.neighbors, list[HeardCell])
                return heard

            locator.scan_cells = exclusive_scan
        fix = await locator.locate()
        position = fix.to_json()
        self._store.append_position(position)
        self._store.update(position=position)
        with self.concern.changing() as status:
            status.position = _shown(position)
            if fix.position is not None:
                place = Place(fix.position.lat, fix.position.lon)
                status.track = [*status.track[1 - HISTORY :], place]
        if moved(self._store.record.reported, fix):
            await self._report(profile.kit.device_id, fix, position, client)
        else:
            self._nothing_is_unreported()  # a kit that is back where it was reported

    async def _report(
        self, device_id: str, fix: Fix, position: dict[str, object], client: HttpClient
    ) -> None:
        """Report a position to the device cloud; if that fails the next one is reported."""
        message = position_message(fix)
        try:
            await client.send(SendMessage(device_id, message), retries=NO_RETRY)
        except (AgentError, AtError) as error:
            self._asked_s = wait_asked_s(error)
            before = self.concern.status.unreported
            hint = self.concern.pasteable(error.hint)
            with self.concern.changing() as status:
                status.unreported, status.unreported_hint = str(error), hint or None
            if before is None or not differ_in_numbers_only(before, str(error)):
                text = f"the change of place could not be reported: {error}"
                self.concern.log(logging.WARNING, with_hint(text, hint))
            self._report_awaits_service = isinstance(error, Unavailable) and not self._asked_s
            return
        self._nothing_is_unreported()
        self._store.update(reported=position)
        assert fix.position is not None
        where = f"{fix.position.lat:.5f}, {fix.position.lon:.5f}"
        self.concern.log(logging.INFO, f"at {where}; the device cloud was told")

    def _nothing_is_unreported(self) -> None:
        self._asked_s, self._report_awaits_service = 0.0, False
        with self.concern.changing() as status:
            status.unreported = status.unreported_hint = None


def pause_s(interval_s: float, asked_s: float) -> float:
    """Return the seconds until the next position.

    One whose report the service put off by `asked_s` is not kept back until the interval is over;
    but a kit is not asked for its cells every second.
    """
    return max(asked_s, min(interval_s, _SOONEST_S)) if asked_s else interval_s


def _shown(position: Mapping[str, object] | None) -> LastPosition | None:
    """Return a position for the status; None where the record of an earlier agent lacks parts."""
    try:
        return msgspec.convert(position, LastPosition | None)
    except msgspec.ValidationError:
        return None
