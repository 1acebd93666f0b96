"""The status of the agent as structs: what `status --json` prints and the control socket carries.

A concern's struct holds its state and its facts. A new fact is one line here: a field with a
default, which is left out of the JSON until the fact is known; metrics show every number.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import msgspec


class Phase(StrEnum):
    """How a concern is doing."""

    STARTING = "starting"
    WELL = "well"
    WAITING = "waiting"
    """For something that another concern reports: the link, the end of a hold."""
    TROUBLE = "trouble"
    OFF = "off"


class ConcernStatus(msgspec.Struct, tag_field="concern", omit_defaults=True):
    """How one concern is doing; a class of its own for each adds the facts."""

    phase: Phase = msgspec.field(name="state")
    trouble: str | None
    """The reason of the state: what is wrong, why it is off or what it waits for."""
    hint: str | None = msgspec.field(name="try")
    failures: int
    """Tries in a row that failed."""
    since: float
    """Unix time of the last change of state, in milliseconds' steps."""

    @property
    def name(self) -> str:
        """The name of the concern."""
        return str(self.__struct_config__.tag)

    def numbers(self) -> Iterator[tuple[str, float]]:
        """Return name and value of each fact that is known, and a number."""
        for field in msgspec.structs.fields(self)[len(ConcernStatus.__struct_fields__) :]:
            value = getattr(self, field.name)
            if value != field.default and isinstance(value, int | float):
                yield field.encode_name, float(value)


class Finding(msgspec.Struct, frozen=True):
    """One thing that keeps the agent from its whole job, and what to try."""

    what: str
    hint: str | None = msgspec.field(name="try")

    def __str__(self) -> str:
        return f"{self.what}; try: {self.hint}" if self.hint else self.what


class PortStatus(ConcernStatus):
    """A concern that holds a port, and releases it to programs."""

    let_go_for: str | None = None
    """The program, or the work of the agent, that the port is released to now."""
    let_go: int = 0
    """How often it was released."""
    let_go_s: float | None = None
    """For how many seconds, all in all."""


class LinkStatus(PortStatus, tag="link"):
    """The link to a kit, and what its modem answered."""

    dialect: str | None = None
    terminator: str | None = None
    baud: int | None = None
    firmware: str | None = None
    allowed: bool | None = None
    """Whether the modem's firmware may make calls in the kit's name."""
    device_id: str | None = None
    application: str | None = None
    imei: str | None = None
    model: str | None = None
    registration: int | None = None
    time: str | None = None
    findings: list[Finding] | None = None
    busy_with: str | None = None
    """What has exclusive use of the kit."""
    held_by: str | None = None
    """The program that all ports of the kit are released to."""
    restarts: int = 0


class ConsoleStatus(PortStatus, tag="console"):
    """A kit's console, and how much of it was read."""

    port: str = ""
    chunks: int = 0
    dumps: int = 0
    faults: int = 0
    reboots: int = 0
    lost: int = 0


class EventsStatus(ConcernStatus, tag="events"):
    """The agent's own events about a kit: how many of each kind are stored."""

    link_lost_count: int = 0
    modem_reset_count: int = 0
    fota_succeeded_count: int = 0
    fota_failed_count: int = 0
    fota_rejected_count: int = 0
    watchdog_count: int = 0
    lost: int = 0


class LastPosition(msgspec.Struct, frozen=True):
    """A position that was found, as `locate --json` prints it."""

    at: str
    method: str = msgspec.field(name="with")
    lat: float | None
    lon: float | None
    uncertainty: float | None
    fulfilled_with: str | None
    cells: int
    access_points: int
    sources: list[str]
    notes: list[str]

    def __post_init__(self) -> None:
        datetime.fromisoformat(self.at)  # raises ValueError


class LocationStatus(ConcernStatus, tag="location"):
    """The positions of a kit."""

    position: LastPosition | None = None
    unreported: str | None = None
    """Why the device cloud does not have it yet."""


class LastJob(msgspec.Struct, frozen=True):
    """An update job that ended."""

    job: str
    status: str
    at: str


class FotaStatus(ConcernStatus, tag="fota"):
    """The updates of a kit: what is done of which stage, and how the last job ended."""

    stage: str | None = None
    done: int | None = None
    total: int | None = None
    last: LastJob | None = None


class FailingLane(msgspec.Struct, frozen=True):
    """Why items of one device and kind are not delivered. Times are Unix times."""

    device: str
    kind: str
    what: str
    since: float
    failures: int
    """Tries in a row that failed."""
    next_try: float
    held: int
    """Messages that failed though the service took others: each waits apart."""


class OutboxStatus(ConcernStatus, tag="outbox", omit_defaults=False):
    """The outbox and its delivery."""

    waiting: int = 0
    parked: int = 0
    bytes: int = 0
    counts: dict[str, int] = {}
    failing: list[FailingLane] | msgspec.UnsetType = msgspec.UNSET


class HousekeepingStatus(ConcernStatus, tag="housekeeping"):
    """What the agent does for itself."""


KitConcern = LinkStatus | ConsoleStatus | EventsStatus | LocationStatus | FotaStatus
S = TypeVar("S", bound=ConcernStatus)


class KitStatus(msgspec.Struct):
    """One kit."""

    name: str
    port: str
    concerns: list[KitConcern]

    def __post_init__(self) -> None:
        if missing := {LinkStatus, ConsoleStatus} - set(map(type, self.concerns)):
            raise ValueError(f"a kit without {missing.pop().__struct_config__.tag}")

    def concern(self, kind: type[S]) -> S:
        """Return the concern of one kind; each kit has one."""
        return next(each for each in self.concerns if isinstance(each, kind))


class AgentProcess(msgspec.Struct, frozen=True):
    """The process of the agent. `since` is the Unix time of its start."""

    pid: int
    version: str
    profile: str
    since: float


class AgentStatus(msgspec.Struct):
    """The whole status."""

    agent: AgentProcess
    outbox: OutboxStatus
    housekeeping: HousekeepingStatus
    kits: list[KitStatus]

    def concerns(self) -> Iterator[ConcernStatus]:
        """Return every concern."""
        yield self.outbox
        yield self.housekeeping
        for kit in self.kits:
            yield from kit.concerns
