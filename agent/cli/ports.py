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

    Nothing is written to a port whose USB identity is not a kit's, unless --port, CELLAGENT_PORT
    or the profile names it or --probe-all is given. Exits with 3 where no port answers.
    """
    run(_ports(probe_all))


async def _ports(probe_all: bool) -> int:
    from agent.cli.ports_of_agents import ports_of_agents
    from at.ports import survey
    from at.usb import device_of, system_ports

    chosen = options()
    held = await ports_of_agents()
    taken = {device_of(report.usb.device) for report in held}
    if chosen.port:
        wanted = device_of(chosen.port)
        reports = [report for report in held if device_of(report.usb.device) == wanted]
        reports = reports or await survey(probe_all=probe_all, named=[chosen.port])
    else:
        reports = held + await survey(
            probe_all=probe_all,
            listing=lambda: [port for port in system_ports() if port.device not in taken],
        )
        reports += await _named_by_the_profile(reports, taken)
    if chosen.json:
        for report in reports:
            emit(as_json(report))
    else:
        _show(reports)
    return 0 if any(report.answers for report in reports) else 3


async def _named_by_the_profile(reports: list[Report], taken: set[str]) -> list[Report]:
    """Probe the profile's own port where the list lacks it, or has it as one not probed.

    It may be no USB port at all (a virtual kit), or one that is only probed when it is named.
    """
    from at.ports import survey
    from at.usb import device_of

    named = _configured()
    known = [report for report in reports if report.usb.device == named]
    if not named or device_of(named) in taken or any(report.answers for report in known):
        return []
    for report in known:
        reports.remove(report)
    return await survey(named=[named])


def _configured() -> str:
    """Return the port that environment or profile name, unless it stands for a listed kit."""
    from agent.cli.configured import configured

    port = configured().profile.kit.port
    return "" if port.startswith("serial:") else port


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
            if report.reason:
                say(f"  {report.reason}")
        else:
            say(f"  no AT ({report.role}): {report.reason}")
            if report.hint:
                say(f"    try: {report.hint}")
