"""A source of Wi-Fi scans, and the scan that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from agent.errors import AgentError
from agent.location.access_points import AccessPoint
from at.protocol.counts import counted
from at.protocol.errors import ParseError

if TYPE_CHECKING:
    from at.driver.modem import Modem
    from at.protocol.command import Command

N_co = TypeVar("N_co", covariant=True)
ANOTHER_SOURCE = (
    "`cellagent config set kit.companion_port PORT` takes a companion, "
    "`cellagent config set location.wifi file:PATH` a file"
)
"""The hint where this host has no Wi-Fi to scan with."""


class WifiUnavailable(AgentError):
    """This source cannot scan here: no radio, no permission, no answer. The message says why."""

    kind = "wifi-unavailable"


@dataclass(frozen=True, slots=True)
class WifiScan:
    """The access points of one scan, the name of its source, and notes for a person."""

    source: str
    points: tuple[AccessPoint, ...]
    notes: tuple[str, ...] = ()


class WifiSource(Protocol):
    """A source of scans."""

    async def scan(self, deadline_s: float) -> WifiScan:
        """Scan within a deadline in seconds. Raises WifiUnavailable."""


class Networks(Protocol, Generic[N_co]):
    """The answer to a command that scans."""

    @property
    def networks(self) -> tuple[N_co, ...]:
        """The networks, one of each line."""
        ...


async def scan_by(
    modem: Modem, command: Command[Networks[N_co]], timeout_s: float
) -> tuple[tuple[N_co, ...], tuple[str, ...]]:
    """Return the networks that a modem hears, and notes of lines that cannot be read.

    A print or a lost byte spoils one line, and the others are a position. Raises AtError, also
    where no line can be read.
    """
    try:
        return (await modem.send(command, timeout_s=timeout_s)).networks, ()
    except ParseError as broken:
        networks: list[N_co] = []
        unread = 0
        for line in broken.answer:
            try:
                networks += command.parse((line,)).networks
            except ParseError:
                unread += 1
        if not networks:
            raise
        note = f"Wi-Fi: {counted(unread, 'lines')} of the scan cannot be read: {broken}"
        return tuple(networks), (note,)
