"""Whether the Serial Modem asks its cloud for a position: it measures cells itself meanwhile.

A measurement of the host's would break that one off, and its result is none of the host's.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from at.driver.stream import Stream
from at.protocol.notices import Notice

NAME = "#XNRFCLOUDPOS"
_LONGEST_S = 30.0
Subscribe = Callable[[str], Stream[Notice]]


class OwnPosition:
    """The request for a position that the modem has accepted last, until its notice."""

    def __init__(self) -> None:
        self._notices: Stream[Notice] | None = None
        self._ends_at = 0.0

    def begin_with(self, line: str, subscribe: Subscribe) -> bool:
        """Note a request if this command line is one; return whether it is."""
        if line[2 : len(NAME) + 3].upper() != f"{NAME}=":
            return False
        self.begin(subscribe)
        return True

    def begin(self, subscribe: Subscribe) -> None:
        """Note that a request is sent; it ends with its notice, or after half a minute.

        `subscribe` is `notices` of the modem.
        """
        self.end()
        self._notices = subscribe(NAME)
        self._ends_at = time.monotonic() + _LONGEST_S

    def end(self) -> None:
        """Note that there is no request any more."""
        if self._notices is not None:
            self._notices.close()
            self._notices = None

    async def wait(self) -> None:
        """Wait until the modem measures nothing for itself. Raises LinkLost."""
        notices = self._notices
        if notices is None:
            return
        with suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(max(0.0, self._ends_at - time.monotonic())):
                await anext(notices)
        if self._notices is notices:
            self.end()
