"""Passes bytes between a program on a served port and the modem behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from at.protocol.errors import AtError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Relay:
    """Passes bytes between the program and the modem; `lost` gets the reason of a lost link."""

    def __init__(self, write: Callable[[bytes], None], lost: asyncio.Future[Exception]) -> None:
        self._write = write
        self._lost = lost
        self.send: Callable[[bytes], None] = lambda _data: None

    def receive(self, data: bytes) -> None:
        """Pass bytes of the program to the modem."""
        try:
            self._write(data)
        except AtError as error:
            self.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Pass bytes of the modem to the program."""
        self.send(data)

    def connection_lost(self, reason: Exception | None) -> None:
        """Set `lost` if there is a reason: the link was not closed by us."""
        if reason is not None and not self._lost.done():
            self._lost.set_result(reason)
