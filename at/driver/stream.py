"""Notices or console lines of a modem, as an asynchronous iterator over a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from at.protocol.errors import AtError
from at.protocol.notices import BoundedQueue

T = TypeVar("T")


class Stream(Generic[T]):
    """A subscription and its items. A context manager: leaving it unsubscribes.

    Iterating waits for the next item. After a loss of the link it yields the items before it, then
    raises LinkLost; after `close` it ends.
    """

    def __init__(self, limit: int, unsubscribe: Callable[[Stream[T]], None]) -> None:
        self.queue: BoundedQueue[T] = BoundedQueue(limit, self._wake)
        self._unsubscribe = unsubscribe
        self._waiter: asyncio.Future[None] | None = None
        self._ended: AtError | None = None
        self._closed = False

    @property
    def dropped(self) -> int:
        """How many items were dropped for newer ones before they were read."""
        return self.queue.dropped

    def take(self) -> list[T]:
        """Remove and return the items that wait, without waiting for more."""
        return [self.queue.get() for _ in range(len(self.queue))]

    def end(self, reason: AtError) -> None:
        """Raise `reason` in the reader once the queue is empty."""
        self._ended = reason
        self._wake()

    def close(self) -> None:
        """Unsubscribe. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._unsubscribe(self)
            self._wake()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        while not self.queue:
            if self._closed:
                raise StopAsyncIteration
            if self._ended is not None:
                raise self._ended
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.queue.get()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
