"""The bodies of requests while they arrive: bounded each, and in sum.

What came of a body is held until the rest is there, and a client need never send that.
"""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

from starlette.types import Message, Receive

MOST_HELD_BYTES = 64 * 1024 * 1024
"""Of all unfinished bodies together; the oldest alone may be larger."""
_FREE_BYTES = 64 * 1024
"""Of each body: it may always be so large, or small requests would have to go for large ones."""
_GRACE_S = 1.0
_LEAST_BYTES_S = 1024 * 1024
"""The pace at which a body has to come, from the grace on, where room is needed."""


class BodyRefused(Exception):
    """A body that is not read to its end; `status` is that of the answer."""

    status: ClassVar[int]


class BodyTooLarge(BodyRefused):
    """The body is larger than the route takes."""

    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"a body here is {limit} bytes at most")


class BodyGivenUp(BodyRefused):
    """Unfinished bodies hold too much, and this one came too slowly, or last."""

    status = 503

    def __init__(self) -> None:
        super().__init__("unfinished requests hold too much memory: send it again")


class Body:
    """The receiving side of a request.

    Raises BodyRefused as soon as more than `limit` bytes have come, or when it is given up.
    """

    __slots__ = ("_began_s", "_held", "_limit", "_receive", "_waiting")
    _unfinished: ClassVar[dict[Body, int]] = {}
    """The bytes of each body of which a part has come, the oldest first: those of all servers of
    this process, which share its memory."""
    _held_by_all: ClassVar[int] = 0

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._held = 0
        self._began_s = 0.0
        """Of the monotonic clock."""
        self._waiting: asyncio.Timeout | None = None
        """While the next part is waited for."""

    async def __call__(self) -> Message:
        """Return the next part."""
        message = await (self._next() if self._held else self._receive())
        if message["type"] == "http.request":
            self._held += len(message.get("body", b""))
            if self._held > self._limit:
                raise BodyTooLarge(self._limit)
            if message.get("more_body", False):
                self._count()
            else:
                self.release()
        return message

    def release(self) -> None:
        """Count the body no longer: it is complete, or nothing more of it is read."""
        Body._held_by_all -= self._unfinished.pop(self, 0)

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout(None) as self._waiting:
                return await self._receive()
        except TimeoutError:
            raise BodyGivenUp from None
        finally:
            self._waiting = None

    def _count(self) -> None:
        """Count what came; where all together hold too much, give up what is too slow, or this."""
        if self not in self._unfinished:
            self._began_s = time.monotonic()
        Body._held_by_all += self._held - self._unfinished.get(self, 0)
        self._unfinished[self] = self._held
        for other in list(self._unfinished) if Body._held_by_all > MOST_HELD_BYTES else ():
            if other._waiting is not None and other._is_slow():
                other.release()
                other._waiting.reschedule(0)
            if Body._held_by_all <= MOST_HELD_BYTES:
                return
        is_oldest = self is next(iter(self._unfinished))
        if Body._held_by_all > MOST_HELD_BYTES and self._held > _FREE_BYTES and not is_oldest:
            raise BodyGivenUp

    def _is_slow(self) -> bool:
        due_s = self._began_s + _GRACE_S + self._held / _LEAST_BYTES_S
        return time.monotonic() > due_s
