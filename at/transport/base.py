"""A two-way byte pipe to one modem: a port, a socket, a recording or the virtual modem."""

from typing import Protocol


def labelled(port: str) -> str:
    """Return the name of a port as a message begins with it: "/dev/ttyACM0:", "virtual:"."""
    return port if port.endswith(":") else f"{port}:"


class Receiver(Protocol):
    """The receiving side of a transport. Both methods are called on the event loop's thread."""

    def data_received(self, data: bytes) -> None:
        """Receive bytes as they arrived: at least one, in arbitrary pieces."""

    def connection_lost(self, reason: Exception | None) -> None:
        """Receive the end, once: no more bytes will come. `reason` is None after close()."""


class Transport(Protocol):
    """A two-way byte pipe to one modem. Bytes are pushed: a reply path has no time to poll."""

    @property
    def name(self) -> str:
        """The port as a person would write it: "/dev/ttyACM0", "tcp://127.0.0.1:4000"."""

    async def open(self, receiver: Receiver) -> None:
        """Open and start pushing to `receiver`. Raises PortError."""

    def write(self, data: bytes) -> None:
        """Send bytes, in order, without waiting. Raises LinkLost once closed."""

    async def drain(self) -> None:
        """Wait until the far end has room again. Raises LinkLost."""

    async def close(self) -> None:
        """Close within a bounded time. Closing twice is harmless."""
