"""What leaves for the observability service: the one outbox of the agent, and its delivery."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from agent.daemon.supervisor import supervise
from agent.errors import AgentError, UsageError
from agent.outbox import Outbox, queries
from agent.outbox.delivery import Delivery
from agent.outbox.sender import ServiceSender
from agent.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent.config.profile import OutboxSettings as Limits
    from agent.daemon.status import Concern
    from agent.http import HttpClient
    from agent.outbox.delivery import Sender
    from agent.outbox.items import Item


class Outgoing:
    """Keeps items on disk, and delivers them with the credentials of the day."""

    def __init__(self, folder: Path, limits: Limits, concern: Concern) -> None:
        """Open the outbox. Raises OutboxHeld while another process has it, AgentError."""
        self.outbox = Outbox(folder, limits)
        self._concern = concern
        self._delivery: Delivery
        self._delivering: asyncio.Task[None] | None = None
        if self.outbox.salvaged is not None:
            text = f"the outbox was damaged: {self.outbox.salvaged} items were salvaged"
            concern.tell(logging.WARNING, text)

    async def deliver_with(self, client: HttpClient) -> None:
        """Deliver by `client` from now on."""
        await self.stop()
        self._delivery = Delivery(self.outbox, _ToldSender(ServiceSender(client), self._concern))
        self._concern.well()
        self._delivering = asyncio.ensure_future(supervise(self._concern, self._delivery.run))

    async def stop(self) -> None:
        """Deliver nothing more; what waits stays on disk."""
        delivering, self._delivering = self._delivering, None
        if delivering is not None:
            await cancel_and_wait(delivering)

    def close(self) -> None:
        """Let another process have the outbox."""
        self.outbox.close()

    def wake(self) -> None:
        """Say that something new waits."""
        self._delivery.wake()  # whichever it is after a reload

    def try_now(self) -> None:
        """Try at once what waits for its next try."""
        self._delivery.try_now()

    async def snapshot(self) -> dict[str, Any]:
        """Return the entry of `status --json`."""
        totals = await self.outbox.atransact(lambda store: store.totals())
        return {
            **self._concern.snapshot(),
            "waiting": totals.waiting,
            "parked": totals.parked,
            "bytes": totals.size,
            "counts": dict(totals.counts),
        }

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """List, flush or drop what waits, for a command that cannot open the outbox itself."""
        parked = request.get("parked") is True
        match request.get("what"):
            case "list":
                limit = request.get("limit")
                return await queries.list_items(
                    self.outbox, limit if isinstance(limit, int) else 1000
                )
            case "drop":
                ids = [number for number in request.get("ids", []) if isinstance(number, int)]
                everything = request.get("everything") is True
                return await queries.drop_items(
                    self.outbox, ids, parked=parked, everything=everything
                )
            case "flush":
                told = await queries.retry_items(self.outbox, parked=parked)
                self.try_now()
                return told
        raise UsageError("of its outbox the agent can be asked to list, drop or flush")


class _ToldSender:
    """Tells how each delivery went."""

    def __init__(self, inner: Sender, concern: Concern) -> None:
        self._inner = inner
        self._concern = concern

    async def send(self, items: Sequence[Item]) -> None:
        """Send items. Raises AgentError."""
        try:
            await self._inner.send(items)
        except AgentError as error:
            self._concern.failed(error)
            raise
        self._concern.well()
