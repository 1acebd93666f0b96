"""`cellagent provision plan`: what would be done to each board."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import asdict

from agent.cli.framework.command import agent_command, emit, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import waiting
from agent.cli.provision import bench_options
from agent.cli.provision.operator_ca import require_operator_ca
from agent.cli.provision.profile_ledger import ledger_of
from agent.cli.provision.run_progress import NO_BOARD
from agent.errors import ResourceUnavailable
from at.protocol.counts import counted

if TYPE_CHECKING:
    from agent.provisioning.running.batch import PlannedBoard


@agent_command("cellagent provision plan --all --expect 16")
@bench_options.take_options
async def command(session: Session, **values: object) -> int:
    """Show the steps that each board still needs; nothing is written to it.

    BOARD is a port as `cellagent ports` lists it, serial:NUMBER, tcp://HOST:PORT or a kit's name;
    without one, it is the kit of the profile.
    """
    from agent.provisioning.running.async_ledger import AsyncLedger
    from agent.provisioning.running.batch import plan_boards, require_count

    given, settings = msgspec.convert(values, bench_options.BenchOptions), session.configuration
    bench_options.require_extras(settings.profile.provisioning)
    goal = bench_options.goal_of(given, settings)
    locations = bench_options.board_finder(given, session, session.usb_ports)()
    require_count(locations, given.expect)
    # Raises what would stop a run before it touches a board: a plan must not promise that.
    bench_options.registrar_of(goal, settings)
    require_operator_ca(goal, settings)
    open_board = bench_options.board_opener(session, session.usb_ports)
    ledger = AsyncLedger(partial(ledger_of, settings))
    try:
        async with waiting(f"reading {counted(len(locations), 'boards')}", session):
            await ledger.opened()
            boards = await plan_boards(locations, goal, ledger, open_board, datetime.now(UTC))
    finally:
        ledger.close()
    known = {board.location.port for board in boards}
    for board in boards:
        plan, port = board.plan, board.location.port
        hint = pasteable_hint(plan.hint, plan.refusal, session, [port], known - {port})
        if session.json:
            emit(_as_json(board, hint))
        else:
            _show(board, hint)
    if not boards:
        note(NO_BOARD)
    if not session.json and len(boards) > 1:
        writes = sum(board.plan.writes for board in boards)
        say(f"{counted(len(boards), 'boards')}, {counted(writes, 'writes')}")
    return max((board.exit for board in boards), default=ResourceUnavailable.exit_code)


def _as_json(board: PlannedBoard, hint: str) -> dict[str, object]:
    return {
        "board": asdict(board.location),
        "device_id": board.device_id,
        "uuid": board.uuid,
        "refusal": board.plan.refusal or None,
        "try": hint,
        "steps": [
            {"step": one.step.value, "words": one.words, "writes": one.writes}
            for one in board.plan.steps
        ],
        "writes": board.plan.writes,
        "exit": board.exit,
    }


def _show(board: PlannedBoard, hint: str) -> None:
    location, plan = board.location, board.plan
    say(": ".join(filter(None, [location.slot or location.port, board.device_id])))
    for number, one in enumerate(plan.steps, 1):
        say(f"  {number:2}. {one.step.value:12} {one.words}")
    if plan.refusal:
        say(f"  no: {plan.refusal}")
    else:
        say(f"  {counted(plan.writes, 'credential writes')}")
    if hint:
        say(f"  try: {hint}")
