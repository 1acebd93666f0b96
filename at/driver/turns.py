"""Turns: one task at a time has the line, the others wait in the order in which they asked."""

import asyncio
from collections import deque


class Turns:
    """A lock, first come, first served, whose waiters can all be let through. Cancel-safe."""

    def __init__(self) -> None:
        self.taken = False
        self._queue: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.taken:
            ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(ticket)
            try:
                await ticket
            except BaseException:
                if not ticket.cancelled():
                    self._pass_on()  # it was our turn already
                raise
        self.taken = True

    async def __aexit__(self, *_exc: object) -> None:
        self._pass_on()

    def let_all_through(self) -> None:
        """Let each waiter have its turn at once: there is nothing any more to take turns for."""
        for ticket in self._queue:
            if not ticket.done():
                ticket.set_result(None)

    def _pass_on(self) -> None:
        while self._queue:
            ticket = self._queue.popleft()
            if not ticket.done():
                ticket.set_result(None)
                return
        self.taken = False
