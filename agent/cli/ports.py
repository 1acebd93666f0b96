"""`cellagent ports`: kits, their ports, which one answers AT, and why the others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.frame import AgentCommand, emit, options, run, say

if TYPE_CHECKING:
    from at.ports import Report


@click.command(cls=AgentCommand, name="ports", epilog="Example: cellagent ports --json")
@click.option(
    "--probe-all",
    is_flag=True,
    help="Write to ports that are not known to be a kit's, too.",
)
def command(probe_all: bool) -> None:
    """List the kits and their ports: which one answers AT, and why the others do not.

    Nothing is written to a port whose USB identity is not a kit's, unless --port names it or
    --probe-all is given. Exits with 3 where no port answers.
    """
    run(_ports(probe_all))


async def _ports(probe_all: bool) -> int:
    from at.ports import survey

    chosen = options()
    reports = await survey(probe_all=probe_all, named=[chosen.port] if chosen.port else [])
    if chosen.json:
        for report in reports:
            emit(as_json(report))
    else:
        _show(reports)
    return 0 if any(report.answers for report in reports) else 3


def as_json(report: Report) -> dict[str, object]:
    """Return the fixed shape of one port."""
    return {
        "port": report.usb.device,
        "kit": _kit(report),
        "role": report.role,
        "answers": report.answers,
        "dialect": report.dialect,
        "terminator": report.terminator,
        "baud": report.baud,
        "firmware": report.firmware,
        "imei": report.imei,
        "reason": report.reason or None,
        "try": report.hint or None,
    }


def _kit(report: Report) -> dict[str, object] | None:
    usb = report.usb
    if usb.model is None:
        return None
    return {"serial": usb.serial, "model": usb.model.name, "usb_place": usb.place or None}


def _show(reports: list[Report]) -> None:
    if not reports:
        say("No serial port is plugged in.")
        say("  try: plug a kit in, or `cellagent modem virtual --pty /tmp/kit`")
        return
    for report in reports:
        usb = report.usb
        kit = f"{usb.model.name} {usb.serial}" if usb.model else usb.description or "unknown device"
        say(f"{usb.device}  {kit}")
        if report.answers:
            say(f"  answers AT: {report.firmware or 'firmware unknown'}, IMEI {report.imei or '-'}")
            say(f"  {report.dialect}, line end {report.terminator}, {report.baud} baud")
        else:
            say(f"  no AT ({report.role}): {report.reason}")
            if report.hint:
                say(f"    try: {report.hint}")
