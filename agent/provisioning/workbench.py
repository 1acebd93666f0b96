"""What all boards of a run have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from agent.provisioning.ledger.database import DatabaseFailed

if TYPE_CHECKING:
    from pathlib import Path

    from agent.provisioning.device_ca import DeviceCa
    from agent.provisioning.goal import Goal
    from agent.provisioning.ledger import Ledger
    from agent.provisioning.registrar import Registrar

T = TypeVar("T")


_PATIENCE_S = 30.0
"""A call may wait for those of all other boards, and for a database that is busy."""
_CLOSE_S = 10.0


class AsyncLedger:
    """The ledger for many tasks: one call after the other, in a thread, since each is synced."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        # One thread: a call whose task was cancelled still ends before the next one begins.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._last: Future[Any] = self._thread.submit(lambda: None)

    async def __call__(self, do: Callable[..., T], *arguments: object, **learned: object) -> T:
        """Call a method of the ledger. Raises DatabaseFailed where nothing comes back."""
        call = self._last = self._thread.submit(do, *arguments, **learned)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.wrap_future(call)
        except TimeoutError as error:
            self.ledger.abort()
            raise DatabaseFailed(f"it did not answer within {_PATIENCE_S:.0f} s") from error

    def close(self) -> None:
        """Let the calls that were begun come to their end, in bounded time; close the ledger."""
        if wait([self._last], _CLOSE_S).not_done:
            self.ledger.abort()
        self._thread.shutdown(cancel_futures=True)
        self.ledger.close()


@dataclass(slots=True)
class Station:
    """The goal and the means: ledger, services, the operator's CA, where host keys are kept."""

    goal: Goal
    ledger: AsyncLedger
    registrar: Registrar | None
    device_ca: DeviceCa | None
    key_folder: Path
    now: Callable[[], datetime]
