"""`cellagent ports`: kits, their ports, which one answers AT, and why the others do not."""

import click

from agent.cli.framework.command import agent_command, emit, say
from agent.cli.framework.session import Session
from agent.daemon.control.leased_transport import HeldKit, held_kits
from agent.daemon.snapshot import Phase
from agent.errors import ResourceUnavailable
from agent.files.paths import state_dir
from at.discovery import PortReport, survey
from at.ports.usb import Listing, UsbPort, device_of


async def ports_of_agents(listing: Listing) -> list[PortReport]:
    """Return a report for each port that a running agent holds, and has not released."""
    listed = {port.device: port for port in listing()}

    def usb(port: str, model: object) -> UsbPort:
        return listed.get(device_of(port, listing)) or UsbPort(port, description=str(model or ""))

    reports: list[PortReport] = []
    for kit in await held_kits(state_dir()):
        if kit.is_released:
            continue
        model = kit.link.model
        reports.append(_at_port(kit, usb(kit.port, model)))
        console = kit.console.port
        if console not in {"", "the AT port"}:
            reason, hint = f"held by {_agent(kit)}", "`cellagent console` shows what it prints"
            reports.append(
                PortReport(usb(console, model), role="console", reason=reason, hint=hint)
            )
    return reports


def _at_port(kit: HeldKit, usb: UsbPort) -> PortReport:
    link = kit.link
    answers = link.phase is Phase.WELL
    trouble = "" if answers else f": {link.trouble or 'it has no link to the kit yet'}"
    return PortReport(
        usb,
        role="at",
        answers=answers,
        dialect=link.dialect,
        terminator=link.terminator,
        baud=link.baud,
        firmware=link.firmware,
        imei=link.imei,
        reason=f"held by {_agent(kit)} as {kit.name}{trouble}",
        hint=link.hint or "" if trouble else "",
    )


def _agent(kit: HeldKit) -> str:
    return f"the running agent (PID {kit.agent.pid}, profile {kit.agent.profile})"


@agent_command("cellagent ports --json")
@click.option(
    "--probe-all", is_flag=True, help="Write to ports that are not known to be a kit's, too."
)
async def command(session: Session, probe_all: bool) -> int:
    """List the kits and their ports: which one answers AT, and why the others do not.

    Nothing is written to a port whose USB identity is not a kit's, unless --port, CELLAGENT_PORT
    or the profile names it or --probe-all is given. Exits with 3 where no port answers.
    """
    reports = await reports_of(session, probe_all=probe_all)
    if session.json:
        for report in reports:
            emit(as_json(report))
    else:
        _show(reports)
    return 0 if any(report.answers for report in reports) else ResourceUnavailable.exit_code


async def reports_of(session: Session, *, probe_all: bool) -> list[PortReport]:
    """Return a report for the port that is named, else for each that is plugged in or held."""
    usb_ports = session.usb_ports
    held = await ports_of_agents(usb_ports)
    held_devices = {device_of(report.usb.device, usb_ports) for report in held}
    if session.port:
        named = session.profile.kit.port  # where --port is the name of a kit, that one's
        device = device_of(named, usb_ports)
        reports = [report for report in held if device_of(report.usb.device, usb_ports) == device]
        reports = reports or await survey(probe_all=probe_all, named=[named], listing=usb_ports)
    else:
        reports = held + await survey(
            probe_all=probe_all,
            listing=lambda: [port for port in usb_ports() if port.device not in held_devices],
        )
        reports += await _named_by_the_profile(session, reports, held_devices)
    return reports


async def _named_by_the_profile(
    session: Session, reports: list[PortReport], held_devices: set[str]
) -> list[PortReport]:
    """Probe the ports of the profile that the list lacks, or has as not probed.

    They may be no USB ports (virtual kits), or such as are probed only when they are named.
    """
    profile = session.profile
    kits = [profile.kit] if profile.kit.port else profile.kits.values()
    named = [kit.port for kit in kits if _is_to_probe(kit.port, reports, held_devices, session)]
    reports[:] = [report for report in reports if report.usb.device not in named]
    return await survey(named=named, listing=session.usb_ports) if named else []


def _is_to_probe(
    port: str, reports: list[PortReport], held_devices: set[str], session: Session
) -> bool:
    if not port or port.startswith("serial:"):
        return False  # a kit that is listed, or not there
    is_held = device_of(port, session.usb_ports) in held_devices
    return not is_held and not any(
        report.answers for report in reports if report.usb.device == port
    )


def as_json(report: PortReport) -> dict[str, object]:
    """Return one port as a JSON object; every key is always there."""
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


def _kit(report: PortReport) -> dict[str, object] | None:
    usb = report.usb
    if usb.model is None:
        return None
    return {"serial": usb.serial, "model": usb.model.name, "usb_place": usb.usb_path or None}


def _show(reports: list[PortReport]) -> None:
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
