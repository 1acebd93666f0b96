"""A modem for tests that are plain functions: the driver's, without an event loop of the user's."""

import asyncio
from collections import deque
from typing import TypeVar

from agent.testing.loop_thread import LoopThread
from at.driver.modem import DEFAULT_TIMEOUT_S, Modem
from at.driver.stream import Stream
from at.protocol.command import Command
from at.protocol.errors import CommandTimeout
from at.protocol.line.items import Answer
from at.protocol.notices import Notice
from at.transport.base import Transport

T = TypeVar("T")
_MOST_KEPT = 256  # notices


class SyncModem:
    """`at.driver.modem.Modem`, call by call. Each raises what the driver's does."""

    def __init__(self, transport: Transport, thread: LoopThread) -> None:
        self._thread = thread
        self._modem = Modem(transport)
        thread.call(self._modem.open())
        self._notices: Stream[Notice] = self._modem.notices()
        self._passed_over: deque[str] = deque(maxlen=_MOST_KEPT)
        """Notices that came while another one was waited for, the oldest first."""

    def execute(
        self, line: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, payload: bytes | None = None
    ) -> Answer:
        """Send a command line; return its answer, whether OK or not."""
        return self._thread.call(self._modem.execute(line, timeout_s=timeout_s, payload=payload))

    def send(self, command: Command[T], *, timeout_s: float | None = None) -> T:
        """Send a typed command; return the value of its answer."""
        return self._thread.call(self._modem.send(command, timeout_s=timeout_s))

    def subscribe(self, line: str) -> None:
        """Send a subscription, which is repeated after each restart of the modem."""
        self._thread.call(self._modem.subscribe(line))

    def transfer(self, command: str, payload: bytes, *, timeout_s: float = 60.0) -> str:
        """Send a command and then raw bytes; return the line that ends the transfer."""
        return self._thread.call(self._modem.transfer(command, payload, timeout_s=timeout_s))

    def notice(self, name: str, timeout_s: float = 10.0) -> str:
        """Return the oldest notice called `name` ("+CEREG") that was not returned yet, or the next.

        Raises CommandTimeout after `timeout_s` seconds.
        """
        return self._thread.call(self._next(name, timeout_s))

    async def _next(self, name: str, timeout_s: float) -> str:
        for line in self._passed_over:
            if line.startswith(f"{name}:"):
                self._passed_over.remove(line)
                return line
        try:
            async with asyncio.timeout(timeout_s):
                async for notice in self._notices:
                    if notice.line.startswith(f"{name}:"):
                        return notice.line
                    self._passed_over.append(notice.line)
        except TimeoutError:
            raise CommandTimeout(f"no {name} in {timeout_s:g} s") from None
        raise AssertionError("a stream ends by raising")

    def time(self) -> float:
        """Return the session's time in seconds: with the recorded waits in it on a replay."""
        return self._thread.loop.time()

    def close(self) -> None:
        """Close the port. Closing twice is harmless."""
        self._thread.call(self._modem.close())
