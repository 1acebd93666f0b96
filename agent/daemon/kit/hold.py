"""What another program may have of a kit: all its ports (a hold), or its modem (a lease)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from agent.daemon.kit.link import EXCLUSIVE_WAIT_S, KitLink
from at.transport.base import Receiver


class LeaseHolder(Receiver, Protocol):
    """Another process that speaks to the modem while it has a lease."""

    async def send(self, answer: dict[str, Any]) -> None:
        """Send it an answer: the lease has begun."""

    async def write_through(self, write: Callable[[bytes], None]) -> None:
        """Pass what it writes to `write`, until it closes."""


@contextlib.asynccontextmanager
async def hold(link: KitLink, who: str) -> AsyncIterator[None]:
    """Release all ports of the kit to another program while the block runs. Raises KitBusy."""
    async with (
        link.exclusive(f"held by {who}", patience_s=EXCLUSIVE_WAIT_S),
        contextlib.AsyncExitStack() as stack,
    ):
        stack.callback(link.concern.wake.set)
        for held in link.ports:
            await stack.enter_async_context(held.released(who))
        link.concern.set_facts(held_by=who)
        try:
            yield
        finally:
            link.on_new_software()  # what holds are for: flashing
            link.concern.set_facts(held_by=None)


async def lease(link: KitLink, name: str, holder: LeaseHolder, who: str) -> None:
    """Connect another process to the modem until it closes. Raises KitAway, KitBusy.

    `name` is the kit's; the port stays open here.
    """
    async with link.exclusive(f"lent to {who}", patience_s=EXCLUSIVE_WAIT_S):
        modem = link.available()
        await holder.send(
            {
                "ok": True,
                "kit": name,
                "dialect": modem.dialect.value,
                "terminator": modem.terminator.value,
            }
        )
        link.is_leased = True
        try:
            await modem.pass_through(holder, holder.write_through)
        finally:
            link.is_leased = False
