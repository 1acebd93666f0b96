"""A hold gives another program all ports of a kit; a lease gives it the modem."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from agent.daemon.kit.link import EXCLUSIVE_WAIT_S, KitLink
from at.transport.base import Receiver


class LeaseHolder(Receiver, Protocol):
    """Another process that speaks to the modem while it has a lease."""

    async def send(self, answer: dict[str, Any]) -> None:
        """Send the answer that the lease has begun."""

    async def write_through(self, write: Callable[[bytes], None]) -> None:
        """Pass the bytes that the process writes to `write`, until it closes."""


@contextlib.asynccontextmanager
async def hold(link: KitLink, program: str) -> AsyncIterator[None]:
    """Release all ports of the kit to another program while the block runs. Raises KitBusy."""
    async with (
        link.exclusive(f"held by {program}", patience_s=EXCLUSIVE_WAIT_S),
        contextlib.AsyncExitStack() as stack,
    ):
        stack.callback(link.concern.wake.set)
        for held in link.ports:
            await stack.enter_async_context(held.released(program))
        link.concern.set_facts(held_by=program)
        try:
            yield
        finally:
            link.on_new_software()  # most holds are for flashing the kit
            link.concern.set_facts(held_by=None)


async def lease(link: KitLink, name: str, holder: LeaseHolder, program: str) -> None:
    """Connect another process to the modem until it closes. Raises KitAway, KitBusy.

    `name` is the name of the kit. The agent keeps the port open.
    """
    async with link.exclusive(f"lent to {program}", patience_s=EXCLUSIVE_WAIT_S):
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
