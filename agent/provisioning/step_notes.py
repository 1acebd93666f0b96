"""What every step of a board needs: its record, its notes in the ledger, whether it is still it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from agent.errors import AgentError
from agent.provisioning.board import BoardPort
from agent.provisioning.ledger import BoardRecord
from agent.provisioning.plan import ProvisioningPlan, ProvisioningStep
from agent.provisioning.workbench import Station

T = TypeVar("T")
_LONGEST_STEP_S = 60.0


class BoardSwapped(AgentError):
    """Another board answers on this port than the one that was begun with."""

    kind = "swapped"


@dataclass(slots=True)
class StepNotes:
    """One board's run: what it is done to, and what is written down of it.

    `writes` counts its flash writes, `offline` tells that its mode is to be put back, `registered`
    that the service was told its key by this run.
    """

    port: BoardPort
    bench: Station
    record: BoardRecord
    plan: ProvisioningPlan
    writes: int = 0
    offline: bool = False
    registered: bool = False
    _noted_writes: int = 0

    async def same_board(self, when: str) -> None:
        """Read the identity again. Raises BoardSwapped where it is another one."""
        found = await self.port.imei()
        if found != self.record.imei:
            raise BoardSwapped(
                f"IMEI {self.record.imei} became {found} at {when}",
                hint="put the board back and run again: what was done is in the ledger",
            )

    def unnoted_writes(self) -> int:
        """Return the writes that the ledger does not count yet; they count as noted from now on."""
        new, self._noted_writes = self.writes - self._noted_writes, self.writes
        return new

    async def _unfinished(self, step: ProvisioningStep) -> str:
        """Return what an earlier run noted as it began a step and did not end it, else ""."""
        line = self.bench.ledger
        return await line(line.ledger.unfinished, self.record.uuid, step.value) or ""

    async def _begin(self, step: ProvisioningStep, detail: str = "") -> None:
        line = self.bench.ledger
        await line(line.ledger.begin, self.record.uuid, step.value, detail)

    async def _refused(self, step: ProvisioningStep, reason: str) -> None:
        line = self.bench.ledger
        await line(line.ledger.refused, self.record.uuid, step.value, reason)

    async def _finish(self, step: ProvisioningStep, detail: str = "", **learned: str) -> None:
        line = self.bench.ledger
        new = self.unnoted_writes()
        await line(line.ledger.finish, self.record.uuid, step.value, detail, new, **learned)
        self._remember(learned)

    async def _learn(self, **learned: str) -> None:
        line = self.bench.ledger
        await line(line.ledger.learn, self.record.uuid, **learned)
        self._remember(learned)

    def _remember(self, learned: dict[str, str]) -> None:
        self.record = BoardRecord(**{**asdict(self.record), **learned})


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; when cancelled meanwhile, let it end first: a modem hates half a command."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_LONGEST_STEP_S)
        if task.done() and not task.cancelled():
            task.exception()  # looked at: nobody is left to be told
        raise
