"""The receiving end of a transport, for tests."""

import asyncio


class ByteReceiver:
    """A receiver that keeps the bytes and the end of a link."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: list[Exception | None] = []
        self.changed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.changed.set()

    def connection_lost(self, reason: Exception | None) -> None:
        self.lost.append(reason)
        self.changed.set()

    async def until(self, data: bytes = b"", *, lost: bool = False) -> None:
        """Wait until `data` is among the bytes received, and the link lost if `lost`."""
        async with asyncio.timeout(60):
            while data not in self.data or (lost and not self.lost):
                self.changed.clear()
                await self.changed.wait()
