"""`cellagent outbox`: what waits for delivery to the observability service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from agent.cli.frame import AgentGroup, emit, options, run, say

if TYPE_CHECKING:
    from agent.observability.outbox.items import Listed, Totals


@click.group(cls=AgentGroup)
def command() -> None:
    """Show, send or drop what waits for delivery; it is kept on disk until it is accepted."""


@command.command("list", epilog="Example: cellagent outbox list --json")
@click.option("--limit", default=1000, show_default=True, help="The most items to show.")
def list_command(limit: int) -> None:
    """Show what waits and what is parked, the oldest first."""
    from agent.cli.queueing import open_outbox
    from agent.config import load

    with open_outbox(load(options().profile)) as outbox:
        items, totals = outbox.do(lambda store: (store.listed(limit), store.totals()))
    for item in items:
        _show(item)
    _sum_up(totals)


@command.command(epilog="Example: cellagent outbox flush --retry-parked")
@click.option("--retry-parked", is_flag=True, help="Try parked items again, too.")
def flush(retry_parked: bool) -> None:
    """Send what waits, now; exits 6 if the service cannot be reached."""
    run(_flush(retry_parked=retry_parked))


async def _flush(*, retry_parked: bool) -> int:
    from agent.cli.queueing import flush as send
    from agent.cli.queueing import open_outbox, trouble
    from agent.config import load

    configuration = load(options().profile)
    with open_outbox(configuration) as outbox:
        if retry_parked:
            await outbox.ado(lambda store: store.retry_parked())
        delivery, done = await send(configuration, outbox)
        totals = await outbox.ado(lambda store: store.totals())
    if options().json:
        emit({"delivered": done.items, "waiting": totals.waiting, "parked": totals.parked})
    else:
        say(f"{done.items} delivered, {totals.waiting} waiting, {totals.parked} parked")
    trouble(delivery)
    return 0


@command.command(epilog="Example: cellagent outbox drop 17 18")
@click.argument("ids", metavar="ID...", type=int, nargs=-1)
@click.option("--parked", is_flag=True, help="Drop everything that is parked.")
@click.option("--all", "everything", is_flag=True, help="Drop everything.")
def drop(ids: tuple[int, ...], parked: bool, everything: bool) -> None:
    """Remove items for good: what the kit printed once is then lost."""
    from agent.cli.queueing import open_outbox
    from agent.config import load
    from agent.errors import UsageError

    if sum(map(bool, (ids, parked, everything))) != 1:
        raise UsageError("name the items to drop, or --parked, or --all")
    with open_outbox(load(options().profile)) as outbox:
        chosen = list(ids) or [
            item.id
            for item in outbox.do(lambda store: store.listed(1 << 40))
            if everything or item.parked
        ]
        gone = outbox.do(lambda store: store.drop(chosen))
    if options().json:
        emit({"dropped": gone})
    else:
        say(f"{gone} dropped")


def _show(item: Listed) -> None:
    captured = datetime.fromtimestamp(item.captured_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if options().json:
        emit(
            {
                "id": item.id,
                "kind": item.kind.value,
                "device": item.device,
                "bytes": item.size,
                "captured": captured,
                "refusals": item.refusals,
                "parked": item.parked or None,
            }
        )
        return
    state = f"parked: {item.parked}" if item.parked else "waits"
    say(f"{item.id:>6}  {item.kind:9} {item.device:20} {item.size:>8} B  {captured}  {state}")


def _sum_up(totals: Totals) -> None:
    counts = dict(totals.counts)
    if options().json:
        emit(
            {
                "summary": {
                    "waiting": totals.waiting,
                    "parked": totals.parked,
                    "bytes": totals.size,
                    "counts": counts,
                }
            }
        )
        return
    past = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in sorted(counts.items()))
    say(f"{totals.waiting} waiting, {totals.parked} parked, {totals.size} bytes; so far: {past}")
