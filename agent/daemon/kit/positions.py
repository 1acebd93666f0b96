"""Where the kit is, every so often: kept with time and sources, a change of place reported."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

from agent.cloud.messages import SendMessage
from agent.daemon.status import State
from agent.errors import AgentError, NotFound
from agent.location.locator import locator_for
from agent.location.movement import moved, position_message
from agent.retry import NO_RETRY
from agent.tasks import wait_for_event
from at.protocol.errors import AtError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config import Profile
    from agent.daemon.kit.identity import KitMemory
    from agent.daemon.kit.link import KitLink
    from agent.daemon.status import Concern
    from agent.http import HttpClient
    from agent.location.cell_scan import CellScan
    from agent.location.locator import Fix

_JITTER = 0.1
_REGISTER = "bring the kit into service first: `cellagent provision run`"


class Positions:
    """The position of one kit: the `kit` of a profile, with its id at the device cloud."""

    def __init__(self, concern: Concern, link: KitLink, memory: KitMemory) -> None:
        self.concern = concern
        self._link = link
        self._memory = memory
        if memory.known.place is not None:
            concern.learn(position=memory.known.place)

    async def run(
        self, profile: Callable[[], Profile], client: HttpClient, refusal: Callable[[], str]
    ) -> None:
        """Find the position at start, then at the interval: the work of the concern."""
        interval = profile().location.interval_s
        if not interval:
            self.concern.off("location.interval_s is 0")
            return
        while True:
            await self._link.up(self.concern)
            if refusal():
                self.concern.off("the modem's firmware is refused")
            else:
                await self.find(profile(), client)
                self.concern.well()
            await wait_for_event(self.concern.wake, interval * (1 + _JITTER * random.random()))  # noqa: S311
            self.concern.wake.clear()

    def link_is_up(self) -> None:
        """Try again what could not be done without the kit."""
        if self.concern.state is not State.WELL:
            self.concern.wake.set()

    async def find(self, profile: Profile, client: HttpClient) -> None:
        """Find the position once; keep it; tell the cloud if the kit is elsewhere now."""
        modem = await self._link.up(self.concern)
        locator = locator_for(profile, profile.kit, client, modem)
        scan = locator.scan_cells
        if scan is not None:

            async def undisturbed() -> CellScan:
                async with self._link.undisturbed("a scan of cells"):
                    return await scan()

            locator.scan_cells = undisturbed
        fix = await locator.locate()
        found: dict[str, Any] = fix.to_json()
        self._memory.add_position(found)
        self._memory.learn(place=found)
        self.concern.learn(position=found)
        if moved(self._memory.known.reported, fix):
            await self._report(profile.kit.device_id, fix, found, client)

    async def _report(
        self, device_id: str, fix: Fix, found: dict[str, Any], client: HttpClient
    ) -> None:
        """Tell the device cloud; what it does not take now is told after the next position."""
        message = position_message(fix)
        try:
            await client.send(SendMessage(device_id, message), retries=NO_RETRY)
        except (AgentError, AtError) as error:
            if self.concern.facts.get("unreported") != str(error):
                way_out = _REGISTER if isinstance(error, NotFound) else error.hint
                text = f"the change of place could not be reported: {error}"
                self.concern.tell(logging.WARNING, f"{text}; try: {way_out}" if way_out else text)
            self.concern.learn(unreported=str(error))
            return
        self._memory.learn(reported=found)
        self.concern.learn(unreported=None)
        self.concern.tell(
            logging.INFO, f"at {found['lat']:.5f}, {found['lon']:.5f}; the device cloud was told"
        )
