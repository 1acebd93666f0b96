"""`cellagent outbox`: what waits for delivery to the observability service."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from agent.cli.framework.command import AgentGroup, emit, note, options, run, say
from agent.daemon.control.protocol import OutboxAnswer, OutboxRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.config import Configuration
    from agent.outbox import Outbox, OutboxHeld
    from agent.outbox.queries import ListedItem, OutboxTotals

T = TypeVar("T")


@click.group(cls=AgentGroup)
def command() -> None:
    """Show, send or drop what waits for delivery; it is kept on disk until it is accepted.

    While the agent runs, the agent does it: the outbox belongs to it then.
    """


@command.command("list", epilog="Example: cellagent outbox list --json")
@click.option("--limit", default=1000, show_default=True, help="The most items to show.")
def list_command(limit: int) -> None:
    """Show what waits and what is parked, the oldest first."""
    run(_list(limit))


@command.command(epilog="Example: cellagent outbox flush --retry-parked")
@click.option("--retry-parked", is_flag=True, help="Try parked items again, too.")
def flush(retry_parked: bool) -> None:
    """Send what waits, now; exits 6 if the service cannot be reached."""
    run(_flush(retry_parked=retry_parked))


@command.command(epilog="Example: cellagent outbox drop 17 18")
@click.argument("ids", metavar="ID...", type=int, nargs=-1)
@click.option("--parked", is_flag=True, help="Drop everything that is parked.")
@click.option("--all", "everything", is_flag=True, help="Drop everything.")
def drop(ids: tuple[int, ...], parked: bool, everything: bool) -> None:
    """Remove items for good: what the kit printed once is then lost."""
    run(_drop(list(ids), parked=parked, everything=everything))


async def _list(limit: int) -> None:
    from agent.outbox import queries

    found = await _on_outbox(
        lambda outbox: queries.list_items(outbox, limit),
        OutboxRequest("list", limit=limit),
        OutboxAnswer[queries.OutboxListing],
    )
    for item in found.items:
        _show(item)
    totals = found.totals
    if options().json:
        emit({"summary": msgspec.to_builtins(totals)})
        return
    shown = f"{totals.waiting} waiting, {totals.parked} parked, {totals.bytes} bytes"
    counts = sorted(totals.counts.items())
    past = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counts)
    say(f"{shown}; so far: {past}" if past else shown)


async def _drop(ids: list[int], *, parked: bool, everything: bool) -> None:
    from agent.outbox import queries

    result = await _on_outbox(
        lambda outbox: queries.drop_items(outbox, ids, parked=parked, everything=everything),
        OutboxRequest("drop", ids=ids, parked=parked, everything=everything),
        OutboxAnswer[queries.OutboxDropped],
    )
    if options().json:
        emit(msgspec.to_builtins(result))
    else:
        say(f"{result.dropped} dropped")


async def _flush(*, retry_parked: bool) -> None:
    from agent.cli.observability.queueing import flush as send
    from agent.cli.observability.queueing import open_outbox, raise_trouble
    from agent.config import load
    from agent.outbox import OutboxHeld, queries

    configuration = load(options().profile)
    try:
        outbox = open_outbox(configuration)
    except OutboxHeld as held:
        request = OutboxRequest("flush", parked=retry_parked)
        answer = OutboxAnswer[queries.OutboxRetried]
        result = await _ask_agent(configuration, held, request, answer)
        note("the running agent sends it now")
        _show_flushed(None, result.totals)
        return
    with outbox:
        if retry_parked:
            await queries.retry_items(outbox, parked=True)
        delivery, done = await send(configuration, outbox)
        result = await queries.retry_items(outbox, parked=False)
    _show_flushed(done.items, result.totals)
    raise_trouble(delivery)


def _show_flushed(delivered: int | None, totals: OutboxTotals) -> None:
    if options().json:
        emit({"delivered": delivered, "waiting": totals.waiting, "parked": totals.parked})
        return
    first = f"{delivered} delivered, " if delivered is not None else ""
    say(f"{first}{totals.waiting} waiting, {totals.parked} parked")


async def _on_outbox(
    work: Callable[[Outbox], Awaitable[T]], request: OutboxRequest, kind: type[OutboxAnswer[T]]
) -> T:
    """Return the result of `work`; where the agent holds the outbox, it does the request."""
    from agent.cli.observability.queueing import open_outbox
    from agent.config import load
    from agent.outbox import OutboxHeld

    configuration = load(options().profile)
    try:
        outbox = open_outbox(configuration)
    except OutboxHeld as held:
        return await _ask_agent(configuration, held, request, kind)
    with outbox:
        return await work(outbox)


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


def _show(item: ListedItem) -> None:
    if options().json:
        emit(msgspec.to_builtins(item))
        return
    state = f"parked: {item.parked}" if item.parked else "waits"
    say(f"{item.id:>6}  {item.kind:9} {item.device:20} {item.bytes:>8} B  {item.captured}  {state}")
