"""`cellagent provision plan`: what would be done to each board."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from agent.cli.bench_settings import BenchOptions, bench_options, configuration, goal_of, ledger_of
from agent.cli.frame import AgentCommand, emit, options, run, say

if TYPE_CHECKING:
    from typing import Any

    from agent.provisioning.goal import Goal
    from agent.provisioning.ledger import Ledger
    from agent.provisioning.outcome import Place


@click.command(
    cls=AgentCommand, name="plan", epilog="Example: cellagent provision plan --all --expect 16"
)
@bench_options
def command(**told: Any) -> None:
    """Show the steps that each board still needs; nothing is written."""
    run(_plan(BenchOptions(**told)))


async def _plan(told: BenchOptions) -> int:
    from agent.provisioning.bench import expect
    from agent.provisioning.places import chosen_places

    settings = configuration()
    names = told.boards or tuple(filter(None, [options().port]))
    slots = settings.profile.provisioning.slots
    places = chosen_places(names, all_kits=told.all_kits, slots=slots)
    expect(places, told.expect)
    ledger = await asyncio.to_thread(ledger_of, settings, writes=False)
    try:
        codes = [await _plan_one(place, goal_of(told, settings), ledger) for place in places]
    finally:
        ledger.close()
    return max(codes, default=0)


async def _plan_one(place: Place, goal: Goal, ledger: Ledger) -> int:
    from agent.provisioning.board_run import known_of
    from agent.provisioning.modem_board import open_board
    from agent.provisioning.plan import plan

    async with open_board(place) as port:
        board = await port.read()
    known = await asyncio.to_thread(known_of, ledger, board.uuid)
    made = plan(board, goal, known)
    device_id = goal.device_id(board.uuid, board.imei)
    if options().json:
        emit(
            {
                "board": {
                    "serial": place.serial,
                    "usb_place": place.usb_place,
                    "slot": place.slot,
                    "port": place.port,
                },
                "device_id": device_id,
                "uuid": board.uuid,
                "refusal": made.refusal or None,
                "try": made.hint,
                "steps": [
                    {"step": one.step.value, "words": one.words, "writes": one.writes}
                    for one in made.steps
                ],
                "writes": made.writes,
            }
        )
    else:
        say(f"{place.slot or place.port}: {device_id}")
        for number, one in enumerate(made.steps, 1):
            say(f"  {number:2}. {one.step.value:12} {one.words}")
        say(f"  {made.writes} credential writes" if not made.refusal else f"  no: {made.refusal}")
        if made.hint:
            say(f"  try: {made.hint}")
    return 4 if made.refusal else 0
