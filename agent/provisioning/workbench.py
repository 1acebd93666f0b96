"""What all boards of a run have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from agent.provisioning.device_ca import DeviceCa
    from agent.provisioning.goal import Goal
    from agent.provisioning.ledger import Ledger
    from agent.provisioning.registrar import Registrar

T = TypeVar("T")


class LedgerLine:
    """The ledger for many tasks: one call after the other, in a thread, since each is synced."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        # One thread: a call whose task was cancelled still ends before the next one begins.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    async def __call__(self, do: Callable[..., T], *arguments: object, **learned: object) -> T:
        """Call a method of the ledger."""
        call = self._thread.submit(do, *arguments, **learned)
        return await asyncio.wrap_future(call)

    def close(self) -> None:
        """Wait for the calls that were begun, then close the ledger."""
        self._thread.shutdown()
        self.ledger.close()


@dataclass(slots=True)
class Bench:
    """The goal and the means: ledger, services, the operator's CA, where host keys are kept."""

    goal: Goal
    ledger: LedgerLine
    registrar: Registrar | None
    device_ca: DeviceCa | None
    key_folder: Path
    now: Callable[[], datetime]
