"""`cellagent status`: what the running agent does and how its kits are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli.framework.command import ProfileCommand, agent_command, emit, note
from agent.cli.framework.safe_text import drawing
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import marked, redraws, say_marked, width_of_text, wrapped
from agent.daemon.snapshot import (
    MEASURED,
    AgentStatus,
    ConcernStatus,
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    LinkStatus,
    LocationStatus,
    Phase,
    State,
)
from agent.daemon.states import duration
from agent.errors import AgentError, ConfigError
from at.protocol.counts import counted

if TYPE_CHECKING:
    from agent.daemon.control.socket import ControlSocket


@agent_command("cellagent status --watch", ProfileCommand)
@click.option("--watch", is_flag=True, help="Go on, as it changes, until Ctrl-C.")
async def command(session: Session, *, watch: bool) -> int:
    """Show what the agent does; exits with 3 if none runs, 1 if something is in trouble."""
    return await (_watch(session) if watch else _status(session))


async def _status(session: Session) -> int:
    from agent.daemon.control.client import ask
    from agent.daemon.control.protocol import StatusAnswer, StatusRequest

    with _agent_of(session) as control_socket:
        status = (await ask(control_socket, StatusRequest(), StatusAnswer)).status
    _show(session, status, *lines_of(status, datetime.now(UTC)))
    in_trouble = any(each.state is State.TROUBLE for each in status.concerns())
    return AgentError.exit_code if in_trouble else 0


async def _watch(session: Session) -> int:
    from agent.cli.framework.signals import reader_left
    from agent.tasks import first_of

    await first_of(_show_changes(session), reader_left())
    return 0


async def _show_changes(session: Session) -> None:
    from agent.daemon.control.client import open_request
    from agent.daemon.control.protocol import StatusAnswer, WatchRequest

    async with AsyncExitStack() as stack:
        with _agent_of(session) as control_socket:
            opening = open_request(control_socket, WatchRequest())
            connection = await stack.enter_async_context(opening)
        if session.json or not redraws(sys.stdout):
            while True:
                status = (await connection.answer(StatusAnswer, None)).status
                _show(session, status, *lines_of(status, datetime.now(UTC)), "")
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=drawing(sys.stdout))
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                status = (await connection.answer(StatusAnswer, None)).status
                text = "\n".join(map(marked, lines_of(status, datetime.now(UTC))))
                live.update(Text.from_ansi(text), refresh=True)


@contextmanager
def _agent_of(session: Session) -> Iterator[ControlSocket]:
    """Give the socket of the agent to ask in the block.

    A configuration that cannot be read now does not hide an agent that read it before: what is
    wrong with it is told beside what that answers. Raises ConfigError where none does.
    """
    from agent.daemon.control.client import NotRunning
    from agent.daemon.control.socket import control_socket_of

    try:
        configuration = session.loaded
    except ConfigError as broken:
        control_socket = _socket_of_reader(session)
        if control_socket is None:
            raise
        with suppress(NotRunning):
            yield control_socket
            note(f"cellagent: {broken}; the running agent goes on with what it read before")
            if broken.hint:
                note(f"  try: {broken.hint}")
            return
        raise
    yield control_socket_of(configuration.state_dir, configuration.name)


def _socket_of_reader(session: Session) -> ControlSocket | None:
    """Return the socket of the agent of the profile in use, as far as that is known, or the only.

    None where none of them can be meant.
    """
    from agent.config.load import profile_name
    from agent.daemon.control.socket import control_socket_of, control_sockets
    from agent.files.paths import state_dir

    named = session.profile_name or os.environ.get("CELLAGENT_PROFILE")
    try:
        return control_socket_of(state_dir(), named or profile_name())
    except ConfigError:
        running = [each for each in control_sockets(state_dir()) if each.is_listening()]
    return running[0] if len(running) == 1 else None


def _show(session: Session, status: AgentStatus, *lines: str) -> None:
    if session.json:
        emit(msgspec.to_builtins(status))
    else:
        say_marked(*lines)
        sys.stdout.flush()  # to a pipe, too: what comes next may be a wait


def lines_of(status: AgentStatus, now: datetime) -> Iterator[str]:
    """Return a status as lines for a person, at most 80 characters wide where words allow it."""
    agent, outbox = status.agent, status.outbox
    told: set[str] = set()
    head = status.headline
    word = f"{head.state.value}: " if head.state is not State.WELL else ""
    yield from wrapped(f"{word}{head.says}", "")
    up = _since(agent.since, now)
    yield f"cellagent {agent.version}, profile {agent.profile}, PID {agent.pid}, up {up}"
    parked = f", {outbox.parked} parked" if outbox.parked else ""
    delivered = outbox.counts.get("delivered", 0)
    lost = outbox.counts.get("unreadable", 0)
    damaged = f", {lost} LOST to damage" if lost else ""
    shown = f"{outbox.waiting} waiting{parked}, {delivered} delivered{damaged}"
    yield from _concern(outbox, shown, now, told, indent="")
    for lane in outbox.failing or []:
        held = f"{lane.held} held apart, " if lane.held else ""
        again = _next_try(lane.next_try, now) or "tries now"
        tries = f"{counted(lane.failures, 'tries')} in {_since(lane.since, now)}"
        text = f"{lane.kind} of {lane.device or '-'}: {tries}"
        what = "" if lane.what == outbox.trouble else f": {lane.what}"
        yield from wrapped(f"{text}, {held}{again}{what}", "!   ")
    for kit in status.kits:
        yield ""
        link = kit.concern(LinkStatus)
        state = "" if kit.state is State.WELL else kit.state.value
        yield "  ".join(filter(None, (kit.name, kit.port, _device_id(link), state)))
        for each in kit.concerns:
            yield from _concern(each, _facts(each, now), now, told)
            if isinstance(each, LocationStatus):
                yield from _unreported(each, told)
            if each is link:
                yield from _cause(link, told)
                for finding in link.findings_beside_cause():
                    yield from wrapped(finding.what, "  !   ")
                    yield from _way_out("      ", finding.hint, told)


def _device_id(link: LinkStatus) -> str:
    """Return a kit's id at the services and where it comes from."""
    if link.device_id is None:
        return "(id not known yet: what is taken waits)"
    origin = link.device_id_from or ""
    return f"{link.device_id} ({_ORIGINS.get(origin, origin)})" if origin else link.device_id


_ORIGINS = {"uuid": "UUID", "imei": "IMEI", "own-events": "as its own events name it"}
_MARKS = {
    State.TROUBLE: "NO",
    State.ATTENTION: "!!",
    State.UNKNOWN: "??",
    State.WORKING: "..",
    State.WELL: "ok",
}


def _concern(
    each: ConcernStatus, facts: str, now: datetime, told: set[str], indent: str = "  "
) -> Iterator[str]:
    is_off = each.phase is Phase.OFF
    mark = "--" if is_off and each.state is State.WELL else _MARKS[each.state]
    parts = ["" if each.phase is Phase.WELL else each.phase.value]
    if each.phase is Phase.TROUBLE:
        since = f"{_clock(each.since)} ({_since(each.since, now)})"
        tries = f"{each.failures} tries" if each.failures > 1 else ""
        again = "" if each.next_try is None else _next_try(each.next_try, now)
        parts = [f"trouble since {since}", tries, again]
    elif each.phase is Phase.WAITING:
        parts = [f"waiting for {each.trouble}"]
    shown = ", ".join(filter(None, (*parts, facts)))
    first = f"{indent}{mark}  {each.name:12} "
    yield from wrapped(shown, first) if shown else [first.rstrip()]
    if each.trouble and each.phase is not Phase.WAITING:
        yield from wrapped(each.trouble, f"{indent}    ")
        yield from _way_out(f"{indent}    ", each.hint, told)


def _unreported(each: LocationStatus, told: set[str]) -> Iterator[str]:
    if each.unreported is not None:
        yield from wrapped(f"not reported: {each.unreported}", "  !   ")
        yield from _way_out("      ", each.unreported_hint, told)


def _cause(link: LinkStatus, told: set[str]) -> Iterator[str]:
    if link.cause is not None:
        cause = link.cause
        yield from wrapped(f"{cause.says} ({cause.certainty}: {cause.evidence})", "  !   ")
        yield from _way_out("      ", cause.next, told)


def _way_out(indent: str, hint: str | None, told: set[str]) -> Iterator[str]:
    """Return what to try. A command is not broken into lines: it is there to be pasted."""
    if hint is None:
        return
    if hint in told:
        yield f"{indent}try: as above"
        return
    told.add(hint)
    words = f"try: {hint}"
    command = re.search(r"`[^`]+`", words)
    if command is None or len(indent) + len(words) <= width_of_text():
        yield from wrapped(words, indent)
        return
    before, after = words[: command.start()].rstrip(" :;,"), words[command.end() :].strip(" ;,")
    yield from wrapped(before if before.endswith("?") else f"{before}:", indent)
    yield f"{indent}  {command[0][1:-1]}"
    if after:
        yield from wrapped(after, indent)


def _next_try(at: datetime, now: datetime) -> str:
    return f"next try at {_clock(at, '%H:%M:%S')}" if at > now else ""


def _clock(at: datetime, form: str = "%H:%M") -> str:
    """Return a time by the clock here; one at either end of the calendar as it is."""
    with suppress(OverflowError, ValueError, OSError):
        at = at.astimezone()
    return f"{at:{form}}"


def _since(then: datetime, now: datetime) -> str:
    return duration((now - then.replace(tzinfo=then.tzinfo or UTC)).total_seconds())


def _facts(each: ConcernStatus, now: datetime) -> str:
    match each:
        case LinkStatus():
            # What its phase says of who holds the kit is not said again.
            told = each.held_by and each.held_by in (each.trouble or "")
            busy_with = None if told else each.busy_with
            words = (each.firmware, each.dialect, busy_with, *_measured(each))
            return ", ".join(filter(None, words))
        case ConsoleStatus():
            return ", ".join(_console(each, now))
        case EventsStatus():
            return ", ".join(_events(each))
        case LocationStatus():
            return _location(each, now)
        case FotaStatus():
            return _fota(each)
    return ""


def _location(each: LocationStatus, now: datetime) -> str:
    position = each.position
    if position is None or position.lat is None or position.lon is None:
        return ""
    around = "" if position.uncertainty is None else f" \u00b1 {position.uncertainty:.0f} m"
    age = _since(datetime.fromisoformat(position.at), now)
    return f"{position.lat:.5f}, {position.lon:.5f}{around} by {position.method}, {age} ago"


def _measured(each: LinkStatus) -> Iterator[str]:
    if each.cell is not None and each.cell.band is not None:
        yield f"band {each.cell.band}"
    if (reading := each.reading) is not None:
        for name, (_, unit) in MEASURED.items():
            if (value := getattr(reading, name)) is not None:
                yield f"{value} {unit}"


def _console(each: ConsoleStatus, now: datetime) -> Iterator[str]:
    counts = {"chunks": each.chunks, "dumps": each.dumps, "faults": each.faults}
    yield from (counted(count, name) for name, count in counts.items() if count)
    if each.crash is not None:
        at_frame = f" at {each.crash.frame}" if each.crash.frame else ""
        yield f"crashed {_since(each.crash.at, now)} ago: {each.crash.what}{at_frame}"
    if each.unstored:
        yield f"{each.unstored} in memory alone"
    if each.lost:
        yield f"{each.lost} LOST for want of room"
    if each.damaged:
        yield f"{counted(each.damaged, 'chunks')} LOST to damage on the line"
    if each.let_go:
        yield f"let go {counted(each.let_go, 'times')} ({each.let_go_s or 0.0:.0f} s)"


def _fota(each: FotaStatus) -> str:
    if each.stage:
        share = f" {100 * (each.done or 0) // each.total} %" if each.total else ""
        proof = f" ({each.proof.partition(':')[0]})" if each.proof else ""
        return f"{each.stage}{share}{proof}"
    return f"last: {each.last.job} {each.last.status}" if each.last else ""


def _events(each: EventsStatus) -> Iterator[str]:
    for name, count in each.numbers():
        if count and name.endswith("_count"):
            yield f"{count:.0f} x {name.removesuffix('_count').replace('_', ' ')}"
    if each.lost:
        yield f"{each.lost} LOST for want of room"
