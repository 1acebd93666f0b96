"""A bounded queue that counts what it loses."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """At most `limit` items: the oldest makes room for the newest, and is counted.

    `wake` is called after each item that finds the queue empty.
    """

    def __init__(self, limit: int, wake: Callable[[], None] = lambda: None) -> None:
        self.limit = limit
        self.dropped = 0
        self.wake = wake
        self._items: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Append `item`."""
        items = self._items
        if len(items) >= self.limit:
            items.popleft()
            self.dropped += 1
        items.append(item)
        if len(items) == 1:
            self.wake()

    def take(self) -> T:
        """Return the oldest item. Raises IndexError where there is none."""
        return self._items.popleft()
