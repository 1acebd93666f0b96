"""`cellagent outbox`: what waits for delivery to the observability service."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from agent.cli.framework.command import ProfileGroup, emit_or_say, note
from agent.cli.framework.listing import ListWriter
from agent.daemon.control.protocol import OutboxAnswer, OutboxRequest
from at.protocol.counts import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.cli.framework.session import Session
    from agent.config import Configuration
    from agent.outbox import OutboxHeld
    from agent.outbox.items import ListedItem, OutboxTotals
    from agent.outbox.store import Store

T = TypeVar("T")


@click.group(cls=ProfileGroup)
def command() -> None:
    """Show, send or drop what waits for delivery; it is kept on disk until it is accepted.

    While the agent runs, the agent does it: the outbox belongs to it then.
    """


@command.command("list", epilog="Example: cellagent outbox list --json")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="The most items to show.",
)
async def list_command(session: Session, limit: int) -> None:
    """Show what waits and what is parked, the oldest first."""
    from agent.outbox import queries

    found = await on_outbox(
        session,
        lambda store: queries.list_items(store, limit),
        OutboxRequest("list", limit=limit),
        OutboxAnswer[queries.OutboxListing],
    )
    out = ListWriter(session, "id", "kind", "device", "bytes", "captured", "state")
    for item in found.items:
        row = (item.id, item.kind, item.device, item.bytes, item.captured, _state(item))
        out.add(msgspec.to_builtins(item), *row)
    if found.items:
        out.end()
    totals = found.totals
    shown = f"{totals.waiting} waiting, {totals.parked} parked, {counted(totals.bytes, 'bytes')}"
    past = ", ".join(_past(name, count) for name, count in sorted(totals.counts.items()))
    summary = {"summary": msgspec.to_builtins(totals)}
    emit_or_say(session, summary, f"{shown}; so far: {past}" if past else shown)


@command.command(epilog="Example: cellagent outbox flush --retry-parked")
@click.option("--retry-parked", is_flag=True, help="Try parked items again, too.")
async def flush(session: Session, retry_parked: bool) -> None:
    """Send what waits, now; exits 6 if the service cannot be reached."""
    from agent.cli.observability.queueing import flush as send
    from agent.cli.observability.queueing import open_outbox, raise_trouble
    from agent.outbox import OutboxHeld, queries

    configuration = session.loaded
    try:
        outbox = open_outbox(configuration)
    except OutboxHeld as held:
        request = OutboxRequest("flush", parked=retry_parked)
        answer = OutboxAnswer[queries.OutboxRetried]
        result = await _ask_agent(configuration, held, request, answer)
        note("the running agent sends it now")
        _show_flushed(session, None, result.totals)
        return
    with outbox:
        if retry_parked:
            await outbox.atransact(lambda store: store.retry_parked())
        delivery, delivered = await send(session, outbox)
        totals = await outbox.atransact(lambda store: store.totals())
    _show_flushed(session, delivered, totals)
    raise_trouble(delivery)


@command.command(epilog="Example: cellagent outbox drop 17 18")
@click.argument("ids", metavar="ID...", type=int, nargs=-1)
@click.option("--parked", is_flag=True, help="Drop everything that is parked.")
@click.option("--all", "everything", is_flag=True, help="Drop everything.")
async def drop(session: Session, ids: tuple[int, ...], parked: bool, everything: bool) -> None:
    """Remove items for good: what the kit printed once is then lost."""
    from agent.outbox import queries

    result = await on_outbox(
        session,
        lambda store: queries.drop_items(store, list(ids), parked=parked, everything=everything),
        OutboxRequest("drop", ids=list(ids), parked=parked, everything=everything),
        OutboxAnswer[queries.OutboxDropped],
    )
    being_sent = f"; {result.sending} being sent, and kept: try again" if result.sending else ""
    emit_or_say(session, msgspec.to_builtins(result), f"{result.dropped} dropped{being_sent}")


def _show_flushed(session: Session, delivered: int | None, totals: OutboxTotals) -> None:
    first = f"{delivered} delivered, " if delivered is not None else ""
    emit_or_say(
        session,
        {"delivered": delivered, "waiting": totals.waiting, "parked": totals.parked},
        f"{first}{totals.waiting} waiting, {totals.parked} parked",
    )


async def on_outbox(
    session: Session,
    work: Callable[[Store], T],
    request: OutboxRequest,
    kind: type[OutboxAnswer[T]],
) -> T:
    """Return the result of `work`; where the agent holds the outbox, it does the request."""
    from agent.cli.observability.queueing import open_outbox
    from agent.outbox import OutboxHeld

    configuration = session.loaded
    try:
        outbox = open_outbox(configuration)
    except OutboxHeld as held:
        return await _ask_agent(configuration, held, request, kind)
    with outbox:
        return await outbox.atransact(work)


async def _ask_agent(
    configuration: Configuration,
    held: OutboxHeld,
    request: OutboxRequest,
    kind: type[OutboxAnswer[T]],
) -> T:
    """Return the agent's answer. Raises `held` if no agent runs: a command holds the outbox."""
    from agent.daemon.control.client import NotRunning, send_request

    try:
        answer = await send_request(configuration.state_dir, configuration.name, request, kind)
    except NotRunning:
        raise held from None
    return answer.outbox


def _past(name: str, count: int) -> str:
    if name == "refused":  # not by the service
        return f"{counted(count, 'times')} without room"
    return f"{count} {name.replace('_', ' ')}"


def _state(item: ListedItem) -> str:
    if item.parked:
        return f"parked: {item.parked}"
    return f"waits, refused {counted(item.refusals, 'times')}" if item.refusals else "waits"
