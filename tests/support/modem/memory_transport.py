"""A transport within the process: the far end is a function of the test or of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from at.protocol.errors import LinkLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from at.transport.base import Receiver


class MemoryTransport:
    """Hands what is written to `far_end`, and what `deliver()` is given to the receiver."""

    def __init__(
        self, far_end: Callable[[bytes], None] = lambda _data: None, name: str = "memory"
    ) -> None:
        self.far_end = far_end
        self.name = name
        self._receiver: Receiver | None = None

    async def open(self, receiver: Receiver) -> None:
        """Start pushing to `receiver`."""
        self._receiver = receiver

    def write(self, data: bytes) -> None:
        """Hand bytes to the far end. Raises LinkLost once closed."""
        if self._receiver is None:
            raise LinkLost(f"{self.name} is closed")
        self.far_end(data)

    async def drain(self) -> None:
        """Return at once: the far end always has room."""

    async def close(self) -> None:
        """Close; the receiver learns it."""
        self._gone(None)

    def deliver(self, data: bytes) -> None:
        """Push bytes from the far end, unless closed."""
        if self._receiver is not None and data:
            self._receiver.data_received(data)

    def unplug(self) -> None:
        """Lose the link, as when the cable is pulled."""
        self._gone(OSError("unplugged"))

    def _gone(self, reason: Exception | None) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.connection_lost(reason)
