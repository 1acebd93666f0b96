"""Several tasks at once, and waits that an event ends early."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol


async def first_of(*works: Coroutine[Any, Any, Any]) -> None:
    """Run all until the first ends; end the others, then raise what that one raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(*tasks)
    for task in done:
        task.result()


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel all tasks and wait until they have ended; what they raise is dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Changing:
    """Something that changes. Who takes `next_change` before a look misses no later change."""

    def __init__(self) -> None:
        self.next_change = asyncio.Event()
        """Set at the next change; another one stands here from then on."""

    def notify_changed(self) -> None:
        """Set `next_change`, and replace it."""
        self.next_change.set()
        self.next_change = asyncio.Event()


class WaitForEvent(Protocol):
    """Waits until an event is set or its seconds are over, whichever is first."""

    async def __call__(self, event: asyncio.Event, seconds: float) -> None:
        """Wait at most `seconds`."""


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most so many seconds, by the event loop's clock."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
