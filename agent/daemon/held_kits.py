"""The kits that running agents hold: found by their ports, by a command that wants one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.daemon.control_client import asking
from agent.daemon.control_place import Place, places
from agent.errors import AgentError
from at.usb import same_port

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


async def find_kit(state_dir: Path, port: str, *, to_watch: bool = False) -> HeldKit | None:
    """Return the kit on `port` if an agent holds it: None if it let go of it for somebody.

    To watch its console it is found by the console's port, too, and while it is let go: a window
    that opened the port then would keep the agent out of it.
    """
    if port == "virtual:" or port.startswith("replay:") or not any(places(state_dir)):
        return None  # of those ports everybody has one of their own
    for kit in await held_kits(state_dir):
        names = [kit.port, str(kit.console.get("port", ""))] if to_watch else [kit.port]
        if any(same_port(name, port) for name in names):
            return kit if to_watch or not kit.is_let_go else None
    return None
