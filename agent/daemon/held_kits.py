"""The kits that running agents hold: found by their ports, by a command that wants one."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.daemon.control_client import asking
from agent.daemon.control_place import Place, places
from agent.errors import AgentError
from at.errors import PortNotFound
from at.usb import resolve

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class HeldKit:
    """A kit that an agent looks after, as its status shows it."""

    place: Place
    agent: dict[str, Any]
    name: str
    port: str
    link: dict[str, Any]
    console: dict[str, Any]

    @property
    def is_let_go(self) -> bool:
        """Tell whether the agent has let go of the ports for somebody."""
        return bool(self.link.get("held_by"))


async def held_kits(state_dir: Path) -> list[HeldKit]:
    """Return the kits of all agents that run with this state folder."""
    found: list[HeldKit] = []
    for place in places(state_dir):
        try:
            async with asking(place, do="status") as connection:
                status = (await connection.answer())["status"]
        except AgentError:
            continue  # left by one that was killed
        for kit in status["kits"]:
            concerns = {each["concern"]: each for each in kit["concerns"]}
            link, console = concerns["link"], concerns["console"]
            found.append(HeldKit(place, status["agent"], kit["name"], kit["port"], link, console))
    return found


async def find_kit(state_dir: Path, port: str, *, or_console: bool = False) -> HeldKit | None:
    """Return the kit on `port` if an agent holds it; by its console's port, too, if asked for.

    None also if the agent let go of it for somebody.
    """
    if port == "virtual:" or port.startswith("replay:") or not any(places(state_dir)):
        return None  # of those ports everybody has one of their own
    for kit in await held_kits(state_dir):
        console = str(kit.console.get("port", ""))
        if same_port(kit.port, port) or (or_console and same_port(console, port)):
            return None if kit.is_let_go else kit
    return None


def same_port(one: str, other: str) -> bool:
    """Tell whether two names mean one port: links are followed, and kits found by their number."""
    if one.startswith("serial:") and other.startswith("serial:"):
        return _number(one) == _number(other)
    return device_of(one) == device_of(other)


def _number(port: str) -> str:
    return port.removeprefix("serial:").lstrip("0").upper()


def device_of(port: str) -> str:
    """Return the device that a port's name leads to now; the name itself where it leads nowhere."""
    if port.startswith("serial:"):
        with contextlib.suppress(PortNotFound):
            return resolve(port)[0]
        return port
    if "/" in port and "://" not in port and not port.startswith("virtual:"):
        return os.path.realpath(port)
    return port
