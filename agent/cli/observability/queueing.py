"""Puts the items of a command into the outbox, and sends what can be sent now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent.cli.framework.command import emit_or_say, note
from agent.cli.framework.terminal import waiting
from agent.errors import AgentError, CredentialError, ServiceRefusal, Unavailable
from at.protocol.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.cli.framework.session import Session
    from agent.config import Configuration
    from agent.outbox import NewItem, Outbox
    from agent.outbox.delivery_loop import Delivery


def open_outbox(configuration: Configuration) -> Outbox:
    """Open the profile's outbox. Raises OutboxHeld while the agent runs."""
    from agent.outbox import Outbox
    from agent.wiring.forwarding import outbox_folder

    outbox = Outbox(outbox_folder(configuration), configuration.profile.outbox)
    if outbox.damage is not None:
        note(str(outbox.damage))
    return outbox


async def queue_and_send(session: Session, items: Sequence[NewItem], *, only_queue: bool) -> None:
    """Store `items` in the outbox, then deliver what can be delivered now.

    While the agent runs, the items are handed to it, and it delivers them.
    """
    from agent.outbox import ItemKind, OutboxHeld
    from agent.outbox.handoff import hand_off
    from agent.wiring.forwarding import outbox_folder

    configuration = session.configuration
    try:
        outbox = open_outbox(configuration)
    except OutboxHeld:
        hand_off(outbox_folder(configuration), items, configuration.profile.outbox, time.time())
        _show(session, {"queued": len(items), "left_for_the_agent": True})
        return
    with outbox:
        receipt = await outbox.aput(items)
        counts: dict[str, object] = {"queued": len(receipt.ids), "duplicates": receipt.duplicates}
        if receipt.duplicates and items[0].kind is ItemKind.COREDUMP:
            note("this dump was taken before; --again sends it once more")
        if only_queue:
            _show(session, counts)
            return
        async with waiting("sending", session):
            delivery, delivered = await flush(session, outbox)
        totals, listed = await outbox.atransact(
            lambda store: (store.totals(), store.list_items(1 << 40))
        )
    # The one that a duplicate repeats may still wait here, under another id.
    repeated = {(one.kind, one.device, len(one.body)) for one in items if receipt.duplicates}
    mine = [
        item
        for item in listed
        if item.id in set(receipt.ids) or (item.kind, item.device, item.bytes) in repeated
    ]
    parked = [item.parked for item in mine if item.parked]
    _show(
        session,
        {**counts, "delivered": delivered, "waiting": totals.waiting, "parked": len(parked)},
    )
    if parked:
        raise AgentError(
            f"the service refuses it: {parked[0]}",
            hint="`cellagent outbox list` shows it; `cellagent outbox drop` removes it",
        )
    if mine:
        raise_trouble(delivery)


async def flush(session: Session, outbox: Outbox) -> tuple[Delivery, int]:
    """Deliver what can be delivered now; return the delivery and how many items."""
    from agent.outbox.delivery_loop import Delivery
    from agent.outbox.delivery_requests import ServiceSender

    async with session.client() as client:
        delivery = Delivery(outbox, ServiceSender(client))
        # Enough for the tries after which an item that is refused for good is parked.
        return delivery, await delivery.flush(patience_s=5.0)


def raise_trouble(delivery: Delivery) -> None:
    """Raise CredentialError, Unavailable or AgentError if something keeps items waiting."""
    if (blocked := delivery.schedule.blocked) is not None:
        raise CredentialError(
            str(blocked),
            hint=f"what was queued is kept: {_advice(blocked) or 'put it right'}; then "
            "`cellagent outbox flush`",
        )
    for lane in delivery.schedule.trouble().values():
        if isinstance(lane.error, ServiceRefusal):
            raise AgentError(
                f"the service refuses it, so far: {lane.error}",
                hint="it is kept, as the service may be wrong: `cellagent outbox flush` tries "
                "again, `cellagent outbox drop` removes it",
            )
        kept = "it is kept on disk: `cellagent outbox flush`, or `cellagent run`, tries again"
        raise Unavailable(
            f"queued, not delivered: {lane.error}",
            hint="; ".join(filter(None, [_advice(lane.error), kept])),
        )


def _advice(error: BaseException) -> str:
    from agent.cli.framework.hints import usual_hint  # only a failure pays for it

    own = getattr(error, "hint", "")
    return own or (usual_hint(error) if isinstance(error, Exception) else "")


def _show(session: Session, counts: dict[str, object]) -> None:
    shown = [
        counted(value, name) if isinstance(value, int) else f"{value} {name}"
        for name, value in counts.items()
        if value and value is not True
    ]
    if counts.get("left_for_the_agent"):
        shown.append("the running agent delivers them")
    emit_or_say(session, counts, ", ".join(shown) or "nothing to do")
