"""A kit's console in a test: what it printed, and waiting for what it is to print."""

import codecs
import re
import threading
import time

from agent.testing.loop_thread import LoopThread
from at.transport.base import Transport

_SHOWN_LINES = 20


class NotPrinted(AssertionError):
    """What was expected was not printed."""


class Console:
    """What the kit prints. No byte is lost before, between or after calls of `expect`.

    Its methods wait on the caller's thread; a coroutine calls them by `asyncio.to_thread`.
    """

    def __init__(self, transport: Transport, thread: LoopThread) -> None:
        self._transport, self._thread = transport, thread
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._more = threading.Condition()
        self.text = ""
        """All that was printed since the test began, line ends as they came."""
        self._read = 0
        self._lost: str | None = None
        thread.call(transport.open(self))

    def expect(self, pattern: str, timeout_s: float = 10.0) -> re.Match[str]:
        """Wait until `pattern` is printed behind what was expected before; return its match.

        In `pattern`, ^ and $ stand for the ends of a line. Raises NotPrinted after `timeout_s`
        seconds, or once the console is gone.
        """
        searched = re.compile(pattern, re.MULTILINE)
        give_up_at = time.monotonic() + timeout_s
        with self._more:
            while (match := searched.search(self.text, self._read)) is None:
                left_s = give_up_at - time.monotonic()
                if self._lost is not None or not self._more.wait(max(left_s, 0.0)):
                    raise self._not_printed(pattern, timeout_s)
            self._read = match.end()
            return match

    def send(self, line: str) -> None:
        """Type a line at the console."""
        self._thread.call(self._typed(line.encode() + b"\r"))

    async def _typed(self, data: bytes) -> None:
        self._transport.write(data)
        await self._transport.drain()

    def close(self) -> None:
        """Close the port. Closing twice is harmless."""
        self._thread.call(self._transport.close())

    def _not_printed(self, pattern: str, timeout_s: float) -> NotPrinted:
        why = f"in {timeout_s:g} s" if self._lost is None else f"before the console {self._lost}"
        unread = self.text[self._read :].splitlines()[-_SHOWN_LINES:]
        shown = "\n".join(f"    {line}" for line in unread) or "    (nothing)"
        return NotPrinted(f"{pattern!r} was not printed {why}; what was, since the last:\n{shown}")

    # --- what the transport calls, on its thread

    def data_received(self, data: bytes) -> None:
        """Add bytes that the kit printed."""
        self._wake(self._decoder.decode(data))

    def connection_lost(self, reason: Exception | None) -> None:
        """Note the end."""
        self._wake(
            self._decoder.decode(b"", final=True), f"was lost: {reason}" if reason else "was closed"
        )

    def _wake(self, text: str, lost: str | None = None) -> None:
        with self._more:
            self.text += text
            self._lost = self._lost or lost
            self._more.notify_all()
