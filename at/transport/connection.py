"""What asyncio tells of a connection: bytes to the receiver, its end, and whether it has room."""

import asyncio

from at.transport.base import Receiver


class Connection(asyncio.Protocol):
    """Passes the bytes and the end of a connection to `receiver`."""

    def __init__(self, receiver: Receiver) -> None:
        self.closed = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.data_received = receiver.data_received  # type: ignore[method-assign]
        self._receiver = receiver
        self._told = False

    def pause_writing(self) -> None:
        """Have writers wait."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self.writable.set()

    def eof_received(self) -> None:
        """Tell the receiver at once: what waits to be written may never leave."""
        self._tell_end(OSError("the far end hung up"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the receiver, and let nobody wait."""
        self.closed.set()
        self.writable.set()
        self._tell_end(exc)

    def _tell_end(self, reason: Exception | None) -> None:
        if not self._told:
            self._told = True
            self._receiver.connection_lost(reason)
