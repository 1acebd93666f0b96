"""The far end of a PTY, on the test's own event loop: a modem, a console, or nothing at all."""

from __future__ import annotations

import asyncio
import os
import pty
import tty
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWERS = {
    b"AT+CMEE?": b"+CMEE: 1\r\nOK\r\n",
    b"AT+CGMR": b"mfw_nrf9160_1.3.5\r\nOK\r\n",
    b"AT+CGSN=1": b'+CGSN: "352656100367872"\r\nOK\r\n',
}


def modem_answer(line: bytes) -> bytes:
    """Answer as an AT host would."""
    return ANSWERS.get(line.strip(b"\r\n"), b"OK\r\n")


class PtyFarEnd:
    """`path` is the terminal; each line that comes (ended by `terminator`) is answered."""

    def __init__(
        self,
        answer: Callable[[bytes], bytes] = modem_answer,
        *,
        terminator: bytes = b"\r",
        first: bytes = b"",
    ) -> None:
        self.master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self.received = b""
        self._more = asyncio.Event()
        self._answer = answer
        self._terminator = terminator
        self._buffer = b""
        if first:
            self.say(first)
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def say(self, data: bytes) -> None:
        os.write(self.master, data)

    async def until(self, data: bytes) -> None:
        """Wait until `data` has come."""
        while data not in self.received:
            self._more.clear()
            await self._more.wait()

    def unplug(self) -> None:
        """Close the far end, as when the cable is pulled."""
        if self.master >= 0:
            asyncio.get_running_loop().remove_reader(self.master)
            os.close(self.master)
            os.close(self._slave)
            self.master = -1

    def __enter__(self) -> PtyFarEnd:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.unplug()

    def _read(self) -> None:
        try:
            data = os.read(self.master, 4096)
        except OSError:
            return
        self.received += data
        self._more.set()
        self._buffer += data
        while self._terminator in self._buffer:
            line, _, self._buffer = self._buffer.partition(self._terminator)
            if answer := self._answer(line):
                self.say(answer)
