"""A line to a virtual kit that loses one byte of one command, or ends with it."""

from typing import Any

from at.transport.base import Receiver
from at.virtual.transport import VirtualTransport


class DamagedLine(VirtualTransport):
    """Loses the last byte of the first command that begins with `command`; `cuts`: all to come."""

    def __init__(self, command: str, *, cuts: bool = False, **options: Any) -> None:
        super().__init__(**{"dialect": "serial-modem", "instant": True, **options})
        self.command, self.cuts = command, cuts
        self.done = False
        self.receiver: Receiver | None = None

    async def open(self, receiver: Receiver) -> None:
        self.receiver = receiver
        await super().open(receiver)

    def write(self, data: bytes) -> None:
        if self.done or not data.startswith(self.command.encode()):
            super().write(data)
            return
        self.done = True
        if self.cuts and self.receiver is not None:
            self.receiver.connection_lost(OSError("unplugged"))
        else:
            super().write(data[:-2] + data[-1:])
