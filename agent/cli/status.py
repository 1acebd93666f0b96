"""`cellagent status`: what the running agent does and how its kits are."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import datetime

import click
import msgspec

from agent.cli.framework.command import agent_command, emit_or_say
from agent.cli.framework.safe_text import drawing, printable
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import draws, wrapped
from agent.daemon.snapshot import (
    AgentStatus,
    ConcernStatus,
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    LinkStatus,
    LocationStatus,
    Phase,
)
from agent.errors import AgentError

_WIDTH = 80


@agent_command("cellagent status --watch")
@click.option("--watch", is_flag=True, help="Go on, as it changes, until Ctrl-C.")
async def command(session: Session, *, watch: bool) -> int:
    """Show what the agent does; exits with 3 if none runs, 1 if something is in trouble."""
    return await (_watch(session) if watch else _status(session))


async def _status(session: Session) -> int:
    from agent.daemon.control.client import send_request
    from agent.daemon.control.protocol import StatusAnswer, StatusRequest

    configuration = session.configuration
    request = StatusRequest()
    answer = await send_request(configuration.state_dir, configuration.name, request, StatusAnswer)
    status = answer.status
    emit_or_say(session, msgspec.to_builtins(status), *lines_of(status, time.time()))
    in_trouble = any(each.phase is Phase.TROUBLE for each in status.concerns())
    return AgentError.exit_code if in_trouble else 0


async def _watch(session: Session) -> int:
    from agent.daemon.control.client import open_request
    from agent.daemon.control.protocol import StatusAnswer, WatchRequest
    from agent.daemon.control.socket import control_socket_of

    configuration = session.configuration
    control_socket = control_socket_of(configuration.state_dir, configuration.name)
    async with open_request(control_socket, WatchRequest()) as connection:
        if session.json or not draws(sys.stdout):
            while True:
                status = (await connection.answer(StatusAnswer, None)).status
                emit_or_say(
                    session, msgspec.to_builtins(status), *[*lines_of(status, time.time()), ""]
                )
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=drawing(sys.stdout))
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                status = (await connection.answer(StatusAnswer, None)).status
                text = printable("\n".join(lines_of(status, time.time())))
                live.update(Text(text), refresh=True)


def lines_of(status: AgentStatus, now: float) -> Iterator[str]:
    """Return a status as lines for a person, at most 80 characters wide where words allow it."""
    agent, outbox = status.agent, status.outbox
    up = _age(now - agent.since)
    yield f"cellagent {agent.version}, profile {agent.profile}, PID {agent.pid}, up {up}"
    parked = f", {outbox.parked} parked" if outbox.parked else ""
    delivered = outbox.counts.get("delivered", 0)
    lost = outbox.counts.get("unreadable", 0)
    damaged = f", {lost} LOST to damage" if lost else ""
    shown = f"{outbox.waiting} waiting{parked}, {delivered} delivered{damaged}"
    yield from _concern(outbox, shown, now, indent="")
    for lane in outbox.failing or []:
        held = f"{lane.held} held apart, " if lane.held else ""
        again = f"next try in {_age(lane.next_try - now)}" if lane.next_try > now else "tries now"
        tries = f"{lane.failures} tries in {_age(now - lane.since)}"
        text = f"{lane.kind} of {lane.device or '-'}: {tries}"
        what = "" if lane.what == outbox.trouble else f": {lane.what}"
        yield from _wrapped("!   ", f"{text}, {held}{again}{what}")
    for kit in status.kits:
        yield ""
        link = kit.concern(LinkStatus)
        yield "  ".join(filter(None, (kit.name, kit.port, link.device_id)))
        for each in kit.concerns:
            yield from _concern(each, _facts(each, now), now)
            if each is link:
                for finding in link.findings or []:
                    yield from _wrapped("  !   ", finding.what)
                    if finding.hint:
                        yield from _wrapped("      ", f"try: {finding.hint}")


def _concern(each: ConcernStatus, facts: str, now: float, indent: str = "  ") -> Iterator[str]:
    state = each.phase
    mark = {Phase.WELL: "ok", Phase.TROUBLE: "NO"}.get(state, "--")
    since = f" since {_age(now - each.since)}" if state is Phase.TROUBLE else ""
    word = "" if state is Phase.WELL else f"{state.value}{since}"
    parts = ", ".join(part for part in (word, facts) if part)
    yield f"{indent}{mark}  {each.name:12} {parts}".rstrip()
    if each.trouble:
        yield from _wrapped(f"{indent}    ", each.trouble)
        if each.hint:
            yield from _wrapped(f"{indent}    ", f"try: {each.hint}")


def _wrapped(indent: str, text: str) -> list[str]:
    return wrapped(text, _WIDTH, indent, " " * len(indent))


def _facts(each: ConcernStatus, now: float) -> str:
    match each:
        case LinkStatus():
            held = f"held by {each.held_by}" if each.held_by else None
            return ", ".join(filter(None, (each.firmware, each.dialect, held, each.busy_with)))
        case ConsoleStatus():
            return ", ".join(_console(each))
        case EventsStatus():
            return ", ".join(_events(each))
        case LocationStatus():
            return _location(each, now)
        case FotaStatus():
            return _fota(each)
    return ""


def _location(each: LocationStatus, now: float) -> str:
    position = each.position
    if position is None or position.lat is None or position.lon is None:
        return ""
    around = "" if position.uncertainty is None else f" \u00b1 {position.uncertainty:.0f} m"
    age = _age(now - datetime.fromisoformat(position.at).timestamp())
    return f"{position.lat:.5f}, {position.lon:.5f}{around} by {position.method}, {age} ago"


def _console(each: ConsoleStatus) -> Iterator[str]:
    counts = {"chunks": each.chunks, "dumps": each.dumps, "faults": each.faults}
    yield from (f"{count} {name}" for name, count in counts.items() if count)
    if each.lost:
        yield f"{each.lost} LOST for want of room"
    if each.let_go:
        often = "once" if each.let_go == 1 else f"{each.let_go} times"
        yield f"let go {often} ({each.let_go_s or 0.0:.0f} s)"


def _fota(each: FotaStatus) -> str:
    if each.total:
        return f"{each.stage} {100 * (each.done or 0) // each.total} %"
    if each.stage:
        return each.stage
    return f"last: {each.last.job} {each.last.status}" if each.last else ""


def _events(each: EventsStatus) -> Iterator[str]:
    for name, count in each.numbers():
        if name.endswith("_count"):
            yield f"{count:.0f} x {name.removesuffix('_count').replace('_', ' ')}"
    if each.lost:
        yield f"{each.lost} LOST for want of room"


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
