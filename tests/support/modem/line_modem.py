"""A modem of one screen for tests of the driver: answers in order, as late as it is told."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from at.driver.modem import Modem
from tests.support.harness import virtual_time
from tests.support.modem.memory_transport import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMAND = re.compile(r'AT([+%#][A-Z0-9]+(=\??|\?|$)([^~"]|"[^"]*"(?=,|$))*)?', re.DOTALL)
_RESOLUTION_S = 1e-6
READS = {
    "AT+CMEE?": "+CMEE: 0",
    "AT+CFUN?": "+CFUN: 1",
    "AT%XSYSTEMMODE?": "%XSYSTEMMODE: 1,0,0,0",
    "AT+CGDCONT?": '+CGDCONT: 0,"IP","","",0,0',
}


class LineModem:
    """Takes command lines at its end of a MemoryTransport.

    `body(command)` gives the body of an answer (None: ERROR); `delay(command)` how long the answer
    takes; what is no command is refused. `queues`: input while it works waits (Serial Modem), else
    it is lost (AT host). CR inside quotes is data, as the firmwares have it.
    """

    def __init__(
        self,
        body: Callable[[str], str | None] = lambda _command: "",
        delay: Callable[[str], float] = lambda _command: 0.0,
        *,
        queues: bool = False,
    ) -> None:
        self.transport = MemoryTransport(self.receive)
        self.body = body
        self.delay = delay
        self.queues = queues
        self.reads = READS
        self.received: list[str] = []
        self.data_mode = False
        self._buffer = b""
        self._free_at = 0.0

    def receive(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        # A loop calls its timers early by up to the resolution of its clock: then it is free.
        if self._free_at > loop.time() + _RESOLUTION_S and not self.queues:
            return  # the AT host's receiver is off while a command runs
        self._buffer += data
        if self.data_mode:
            if b"+++" not in self._buffer:
                return
            self._buffer = self._buffer.partition(b"+++")[2]
            self.data_mode = False
            self.say("#XDATAMODE: 0")
        while (end := self._line_end()) >= 0:
            line, self._buffer = self._buffer[:end], self._buffer[end + 1 :]
            if text := line.decode().strip():
                self._take(text, loop)

    def say(self, *lines: str) -> None:
        self.transport.deliver("".join(f"\r\n{line}\r\n" for line in lines).encode())

    def _line_end(self) -> int:
        quoted = False
        for at, byte in enumerate(self._buffer):
            if byte == ord('"'):
                quoted = not quoted
            elif byte == 13 and not quoted:
                return at
        return -1

    def _take(self, command: str, loop: asyncio.AbstractEventLoop) -> None:
        self.received.append(command)
        known = _COMMAND.fullmatch(command)
        body = self.reads.get(command) or (self.body(command) if known else None)
        self._free_at = max(self._free_at, loop.time()) + self.delay(command)
        answer = ["ERROR"] if body is None else [body, "OK"] if body else ["OK"]
        if self._free_at > loop.time():
            loop.call_at(self._free_at, self.say, *answer)
        else:
            self.say(*answer)


def echoing(command: str) -> str:
    """Return a body that names its command, so that an answer to another one is seen."""
    return f"for {command}"


def run_session(work: Callable[[Modem, LineModem], object]) -> None:
    """Run `work` with an opened modem whose far end is `echoing`, in virtual time."""

    async def session() -> None:
        far = LineModem(echoing)
        modem = Modem(far.transport)
        await modem.open()
        await work(modem, far)  # type: ignore[misc]
        await modem.close()

    virtual_time.run(session())
