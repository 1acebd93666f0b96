"""The status of the agent as structs: what `status --json` prints and the control socket carries.

A concern's struct holds its state and its facts. A new fact is one line here: a field with a
default, which is left out of the JSON until the fact is known; metrics show every number.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, TypeVar

import msgspec

from agent.errors import with_hint

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""In JSON ISO 8601, in UTC."""


class State(StrEnum):
    """What the phase and the facts of a concern mean for a person; the worst first."""

    TROUBLE = "trouble"
    ATTENTION = "attention"
    """It works, and somebody should look: a crash, a finding, a likely cause."""
    UNKNOWN = "unknown"
    """Nothing is heard of it now: lent, held, or it waits for the link."""
    WORKING = "working"
    WELL = "well"


class Phase(StrEnum):
    """How far the work of a concern is."""

    STARTING = "starting"
    WELL = "well"
    WAITING = "waiting"
    """For something that another concern reports: the link, the end of a hold."""
    TROUBLE = "trouble"
    OFF = "off"


class ConcernStatus(msgspec.Struct, tag_field="concern", omit_defaults=True):
    """How one concern is doing; a class of its own for each adds the facts."""

    state: State
    """By the table of `agent.daemon.states`."""
    phase: Phase
    trouble: str | None
    """The reason of the phase: what is wrong, why it is off or what it waits for."""
    hint: str | None = msgspec.field(name="try")
    failures: int
    """Tries in a row that failed."""
    since: Time
    """When its phase last changed, in UTC, as all times here."""
    next_try: Time | None = None
    """When it tries again, or is due again; None while it is at work."""

    @property
    def name(self) -> str:
        """The name of the concern."""
        return str(self.__struct_config__.tag)

    def numbers(self) -> Iterator[tuple[str, float]]:
        """Return name and value of each fact that is known, and a number; and of each count.

        A count that is 0 is one, too: of one that begins at 1 nobody sees the rise.
        """
        facts = msgspec.structs.asdict(self).items()
        yield from _numbers(dict([*facts][len(ConcernStatus.__struct_fields__) :]))


def _numbers(facts: dict[str, object]) -> Iterator[tuple[str, float]]:
    for name, value in facts.items():
        if isinstance(value, int | float):
            yield name, float(value)
        elif isinstance(value, dict):
            yield from _numbers(value)
        elif isinstance(value, Reading):
            yield from _numbers(msgspec.structs.asdict(value))


class Finding(msgspec.Struct, frozen=True):
    """One thing that keeps the agent from its whole job, and what to try."""

    what: str
    hint: str | None = msgspec.field(name="try")

    def __str__(self) -> str:
        return with_hint(self.what, self.hint)


class LikelyCause(msgspec.Struct, frozen=True):
    """Why a kit is not on the network, as `modem why --json` prints it."""

    cause: str
    certainty: str
    says: str
    evidence: str
    next: str


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """The cell that serves a kit; `plmn`, `tac` and `cell_id` are text, as the modem says them."""

    operator: str | None = None
    plmn: str | None = None
    tac: str | None = None
    cell_id: str | None = None
    phys_cell_id: int | None = None
    earfcn: int | None = None
    band: int | None = None


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a kit measured at one time; a value that it did not tell is left out."""

    at: Time
    rsrp_dbm: int | None = None
    snr_db: float | None = None
    supply_mv: int | None = None
    temperature_c: int | None = None


MEASURED = {
    "rsrp_dbm": ("RSRP", "dBm"),
    "snr_db": ("SNR", "dB"),
    "supply_mv": ("Supply", "mV"),
    "temperature_c": ("Modem", "°C"),
}
"""Field of a Reading -> its name and its unit for a person: `status` and the page show them all."""


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
    """The kit's one id at the services; until it is known, what is taken waits for it."""
    device_id_from: str | None = None
    """kit.device_id, uuid, imei, or own-events of a kit that an earlier version named so."""
    application: str | None = None
    imei: str | None = None
    model: str | None = None
    registration: int | None = None
    time: str | None = None
    """The modem's clock at the last contact, ISO 8601, with its zone where that is known."""
    findings: list[Finding] | None = None
    cause: LikelyCause | None = None
    """Why it is not on the network, the best that is known."""
    cell: Cell | None = None
    reading: Reading | None = None
    """The newest of `history`: signal, supply, temperature. None without a link, and while off."""
    history: list[Reading] = []
    """The readings of the last hour, the newest last; at most HISTORY."""
    busy_with: str | None = None
    """What has exclusive use of the kit."""
    held_by: str | None = None
    """The program that all ports of the kit are released to."""
    restarts: int = 0

    def findings_beside_cause(self) -> list[Finding]:
        """Return the findings, without one that says the cause once more."""
        cause = self.cause
        found = self.findings or []
        return [each for each in found if cause is None or cause.says not in each.what]


class Crash(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest crash of a kit. `frame` is its first: the instruction at fault, in hex."""

    at: Time
    what: str
    frame: str | None = None
    thread: str | None = None


class ConsoleStatus(PortStatus, tag="console"):
    """A kit's console, and how much of it was read."""

    port: str = ""
    chunks: int = 0
    dumps: int = 0
    faults: int = 0
    reboots: int = 0
    unstored: int = 0
    """Chunks and dumps that are in memory alone: the disk has no room for them."""
    lost: int = 0
    damaged: int = 0
    """Chunks that were damaged on the line."""
    crash: Crash | None = None


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


class Place(msgspec.Struct, frozen=True):
    """Where a kit was, in degrees."""

    lat: float
    lon: float


class HeardCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """A neighbour of the serving cell."""

    earfcn: int
    pci: int
    rsrp: float | None = None
    """In dBm."""


class LocationStatus(ConcernStatus, tag="location"):
    """The positions of a kit."""

    neighbors: list[HeardCell] = []
    """What the newest scan of cells heard besides the serving one."""
    position: LastPosition | None = None
    track: list[Place] = []
    """The places of this agent's time, the newest last; at most HISTORY."""
    unreported: str | None = None
    """Why the device cloud does not have it yet."""
    unreported_hint: str | None = msgspec.field(name="unreported_try", default=None)


class LastJob(msgspec.Struct, frozen=True):
    """An update job that ended."""

    job: str
    status: str
    at: str
    proof: str | None = None
    """What was and was not proven of its image; its first word is one of the three."""


class FotaStatus(ConcernStatus, tag="fota"):
    """The updates of a kit: what is done of which stage, and how the last job ended."""

    job: str | None = None
    """The job in progress."""
    proof: str | None = None
    """Of its image: size-checked, intact or verified, and what was not proven."""
    stage: str | None = None
    done: int | None = None
    total: int | None = None
    last: LastJob | None = None


class FailingLane(msgspec.Struct, frozen=True):
    """Why items of one device and kind are not delivered."""

    device: str
    kind: str
    what: str
    since: Time
    failures: int
    """Tries in a row that failed."""
    next_try: Time
    held: int
    """Messages that failed though the service took others: each waits apart."""


class OutboxStatus(ConcernStatus, tag="outbox", omit_defaults=False):
    """The outbox and its delivery."""

    waiting: int = 0
    parked: int = 0
    bytes: int = 0
    counts: dict[str, int] = {}
    oldest: Time | None = None
    """When the oldest item that waits was taken."""
    failing: list[FailingLane] | msgspec.UnsetType = msgspec.UNSET


class HousekeepingStatus(ConcernStatus, tag="housekeeping"):
    """What the agent does for itself."""


KitConcern = LinkStatus | ConsoleStatus | EventsStatus | LocationStatus | FotaStatus
S = TypeVar("S", bound=ConcernStatus)
HISTORY = 60
"""Readings that are kept of a kit: one a minute; and places of its track."""


class KitOutbox(msgspec.Struct, frozen=True, omit_defaults=True):
    """What waits of one kit in the outbox."""

    waiting: int = 0
    oldest: Time | None = None
    """When the oldest item that waits was taken."""
    next_try: Time | None = None
    """When it is tried again, where the last try failed."""


class KitStatus(msgspec.Struct):
    """One kit; its state is the worst of its concerns."""

    name: str
    port: str
    state: State
    concerns: list[KitConcern]
    outbox: KitOutbox = KitOutbox()

    def __post_init__(self) -> None:
        if missing := {LinkStatus, ConsoleStatus} - set(map(type, self.concerns)):
            raise ValueError(f"a kit without {missing.pop().__struct_config__.tag}")

    def concern(self, kind: type[S]) -> S:
        """Return the concern of one kind; each kit has one."""
        return next(each for each in self.concerns if isinstance(each, kind))


class AgentProcess(msgspec.Struct, frozen=True):
    """The process of the agent, and when it was started."""

    pid: int
    version: str
    profile: str
    since: Time


class Headline(msgspec.Struct, frozen=True):
    """The worst of all, in a sentence with numbers. `kit` is "" for what all kits share."""

    state: State
    says: str
    hint: str | None = msgspec.field(name="try", default=None)
    kit: str = ""
    concern: str = ""


class AgentStatus(msgspec.Struct):
    """The whole status."""

    agent: AgentProcess
    headline: Headline
    outbox: OutboxStatus
    housekeeping: HousekeepingStatus
    kits: list[KitStatus]

    def concerns(self) -> Iterator[ConcernStatus]:
        """Return every concern."""
        yield self.outbox
        yield self.housekeeping
        for kit in self.kits:
            yield from kit.concerns
