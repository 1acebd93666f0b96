"""Finds the state of a kit before an update, and puts it back after the update's restarts."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.fota.clock import LoopClock
from at.driver.modem import Modem
from at.found_state import NOT_BACK, FoundState, put_back, read_found_state
from at.protocol.errors import CommandRejected, LinkLost, ParseError

AWAY_S = 120.0
"""How long the AT port may be away: an image that runs is a success without it, too."""
_PAUSE_S = 1.0


class KitState:
    """The state of one kit; this one has no AT port, so nothing is found and put back."""

    async def find(self) -> FoundState | None:
        """Return the state in which the kit is, None where it does not tell it. Raises AtError."""
        return None

    async def put_back(self, found: FoundState) -> str:  # noqa: ARG002 - the seam's
        """Bring the kit back to it; return how that ended, "" where nothing was to be done.

        Raises LinkLost.
        """
        return ""


class ModemState(KitState):
    """The state of a kit's modem. `modem` waits for its link, as a restart may end it."""

    def __init__(self, modem: Callable[[], Awaitable[Modem]], settle_s: float) -> None:
        self._modem = modem
        self._settle_s = settle_s
        self._clock = LoopClock()

    async def find(self) -> FoundState | None:
        """Return the state; None for a modem that refuses to tell its mode.

        Raises AtError for a kit that is silent or away: it would stay off once it has the image.
        """
        try:
            async with asyncio.timeout(AWAY_S):
                return await read_found_state(await self._modem())
        except (CommandRejected, ParseError):
            return None
        except TimeoutError:
            raise LinkLost("the kit's AT port is away: nothing is installed") from None

    async def put_back(self, found: FoundState) -> str:
        """Put it back, over as many links as that takes.

        Raises LinkLost where no other link comes after one that was lost.
        """
        left: Modem | None = None
        while True:
            try:
                async with asyncio.timeout(AWAY_S):
                    modem = await self._modem()
            except TimeoutError:
                return f"{NOT_BACK}: its AT port is away"
            try:
                return await put_back(modem, found, self._settle_s, self._clock)
            except LinkLost:
                if modem is left:
                    raise
            left = modem
            await self._clock.sleep(_PAUSE_S)
