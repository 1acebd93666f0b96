"""`cellagent status`: what the running agent does and how its kits are."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from agent.cli.framework.command import AgentCommand, emit, options, run, say
from agent.cli.framework.safe_text import drawing, printable
from agent.cli.framework.session import configured
from agent.cli.framework.terminal import wrapped
from agent.errors import AgentError

_WIDTH = 80


@click.command(cls=AgentCommand, epilog="Example: cellagent status --watch")
@click.option("--watch", is_flag=True, help="Go on, as it changes, until Ctrl-C.")
def command(*, watch: bool) -> None:
    """Show what the agent does; exits with 3 if none runs, 1 if something is in trouble."""
    run(_watch() if watch else _status())


async def _status() -> int:
    from agent.daemon.control.client import send_request

    configuration = configured()
    status = (await send_request(configuration.state_dir, configuration.name, do="status"))[
        "status"
    ]
    if options().json:
        emit(status)
    else:
        for line in lines_of(status, time.time()):
            say(line)
    in_trouble = any(each["state"] == "trouble" for each in concerns_of(status))
    return AgentError.exit_code if in_trouble else 0


async def _watch() -> int:
    from agent.daemon.control.client import open_request
    from agent.daemon.control.socket import control_socket_of

    configuration = configured()
    control_socket = control_socket_of(configuration.state_dir, configuration.name)
    async with open_request(control_socket, do="watch") as connection:
        if options().json or not sys.stdout.isatty():
            while True:
                status = (await connection.answer(None))["status"]
                if options().json:
                    emit(status)
                else:
                    for line in [*lines_of(status, time.time()), ""]:
                        say(line)
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=drawing(sys.stdout))
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                status = (await connection.answer(None))["status"]
                text = printable("\n".join(lines_of(status, time.time())))
                live.update(Text(text), refresh=True)


def concerns_of(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return every concern of a status."""
    yield status["outbox"]
    yield status["housekeeping"]
    for kit in status["kits"]:
        yield from kit["concerns"]


def lines_of(status: dict[str, Any], now: float) -> Iterator[str]:
    """Return a status as lines for a person, at most 80 characters wide where words allow it."""
    agent, outbox = status["agent"], status["outbox"]
    up = _age(now - agent["since"])
    yield f"cellagent {agent['version']}, profile {agent['profile']}, PID {agent['pid']}, up {up}"
    parked = f", {outbox['parked']} parked" if outbox["parked"] else ""
    delivered = outbox["counts"].get("delivered", 0)
    shown = f"{outbox['waiting']} waiting{parked}, {delivered} delivered"
    yield from _concern(outbox, shown, now, indent="")
    for kit in status["kits"]:
        yield ""
        link: dict[str, Any] = next(
            (each for each in kit["concerns"] if each["concern"] == "link"), {}
        )
        yield "  ".join(filter(None, (kit["name"], kit["port"], link.get("device_id"))))
        for each in kit["concerns"]:
            yield from _concern(each, _FACTS.get(each["concern"], _nothing)(each, now), now)
            for finding in each.get("findings", []):
                yield from _wrapped("  !   ", finding["what"])
                if finding["try"]:
                    yield from _wrapped("      ", f"try: {finding['try']}")


def _concern(each: dict[str, Any], facts: str, now: float, indent: str = "  ") -> Iterator[str]:
    state = each["state"]
    mark = {"well": "ok", "trouble": "NO"}.get(state, "--")
    since = f" since {_age(now - each['since'])}" if state == "trouble" else ""
    word = "" if state == "well" else f"{state}{since}"
    parts = ", ".join(part for part in (word, facts) if part)
    yield f"{indent}{mark}  {each['concern']:12} {parts}".rstrip()
    if each["trouble"]:
        yield from _wrapped(f"{indent}    ", each["trouble"])
        if each["try"]:
            yield from _wrapped(f"{indent}    ", f"try: {each['try']}")


def _wrapped(indent: str, text: str) -> list[str]:
    return wrapped(text, _WIDTH, indent, " " * len(indent))


def _link(each: dict[str, Any], _now: float) -> str:
    parts = [each.get("firmware"), each.get("dialect")]
    if each.get("held_by"):
        parts.append(f"held by {each['held_by']}")
    if each.get("busy_with"):
        parts.append(each["busy_with"])
    return ", ".join(str(part) for part in parts if part)


def _location(each: dict[str, Any], now: float) -> str:
    position = each.get("position")
    if not position or position.get("lat") is None:
        return ""
    around = (
        f" \u00b1 {position['uncertainty']:.0f} m"
        if position.get("uncertainty") is not None
        else ""
    )
    age = _age(now - datetime.fromisoformat(position["at"]).timestamp())
    return f"{position['lat']:.5f}, {position['lon']:.5f}{around} by {position['with']}, {age} ago"


def _console(each: dict[str, Any], _now: float) -> str:
    counted = [f"{each[name]} {name}" for name in ("chunks", "dumps", "faults") if each.get(name)]
    if each.get("lost"):
        counted.append(f"{each['lost']} LOST for want of room")
    if each.get("let_go"):
        often = "once" if each["let_go"] == 1 else f"{each['let_go']} times"
        counted.append(f"let go {often} ({each['let_go_s']:.0f} s)")
    return ", ".join(counted)


def _fota(each: dict[str, Any], _now: float) -> str:
    if each.get("total"):
        return f"{each['stage']} {100 * each['done'] // each['total']} %"
    if each.get("stage"):
        return str(each["stage"])
    last = each.get("last")
    return f"last: {last['job']} {last['status']}" if last else ""


def _events(each: dict[str, Any], _now: float) -> str:
    counted = [
        f"{count} x {name.removesuffix('_count').replace('_', ' ')}"
        for name, count in each.items()
        if name.endswith("_count")
    ]
    if each.get("lost"):
        counted.append(f"{each['lost']} LOST for want of room")
    return ", ".join(counted)


def _nothing(_each: dict[str, Any], _now: float) -> str:
    return ""


_FACTS = {
    "link": _link,
    "location": _location,
    "console": _console,
    "fota": _fota,
    "events": _events,
}


def _age(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
