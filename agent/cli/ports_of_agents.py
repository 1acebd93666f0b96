"""The ports that running agents hold, as the agents know them: nobody else may open one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.config.places import state_dir
from agent.daemon.held_kits import held_kits
from at.ports import Report
from at.usb import UsbPort, device_of, system_ports

if TYPE_CHECKING:
    from agent.daemon.held_kits import HeldKit


async def ports_of_agents() -> list[Report]:
    """Return a report for each port that an agent holds; none for one that it let go of."""
    listed = {port.device: port for port in system_ports()}

    def usb(port: str, model: object) -> UsbPort:
        return listed.get(device_of(port)) or UsbPort(port, description=str(model or ""))

    reports: list[Report] = []
    for kit in await held_kits(state_dir()):
        if kit.is_let_go:
            continue
        model = kit.link.get("model")
        reports.append(_at_port(kit, usb(kit.port, model)))
        console = str(kit.console.get("port", "the AT port"))
        if console != "the AT port":
            held, hint = f"held by {_agent(kit)}", "`cellagent console` shows what it prints"
            reports.append(Report(usb(console, model), role="console", reason=held, hint=hint))
    return reports


def _at_port(kit: HeldKit, usb: UsbPort) -> Report:
    link = kit.link
    well = link["state"] == "well"
    trouble = "" if well else f": {link['trouble'] or 'it has no link to the kit yet'}"
    return Report(
        usb,
        role="at",
        answers=well,
        dialect=link.get("dialect"),
        terminator=link.get("terminator"),
        baud=link.get("baud"),
        firmware=link.get("firmware"),
        imei=link.get("imei"),
        reason=f"held by {_agent(kit)} as {kit.name}{trouble}",
        hint=link["try"] or "" if trouble else "",
    )


def _agent(kit: HeldKit) -> str:
    return f"the running agent (PID {kit.agent['pid']}, profile {kit.agent['profile']})"
