"""Made-up statuses of an agent and its kits, for what shows them."""

from datetime import UTC, datetime
from typing import Any

from agent.daemon.snapshot import (
    AgentProcess,
    AgentStatus,
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    Headline,
    HousekeepingStatus,
    KitStatus,
    LinkStatus,
    LocationStatus,
    OutboxStatus,
    Phase,
    State,
)

NOW = datetime(2026, 11, 22, 6, 10, 2, tzinfo=UTC)


def kit(name: str, *, state: State = State.WELL, since: datetime = NOW, **link: Any) -> KitStatus:
    """Return a kit in a state, by its link, of which `link` are facts."""
    phase = Phase.TROUBLE if state is State.TROUBLE else Phase.WELL
    trouble = "its port went away" if phase is Phase.TROUBLE else None
    well = State.WELL, Phase.WELL, None, None, 0, since
    return KitStatus(
        name,
        f"/dev/{name}",
        state,
        [
            LinkStatus(state, phase, trouble, None, 0, since, **link),
            ConsoleStatus(*well),
            EventsStatus(*well),
            LocationStatus(*well),
            FotaStatus(*well),
        ],
    )


def status(*kits: KitStatus) -> AgentStatus:
    """Return the status of an agent with these kits, which is well itself."""
    well = State.WELL, Phase.WELL, None, None, 0, NOW
    return AgentStatus(
        AgentProcess(1, "0.2.0", "lab", NOW),
        Headline(State.WELL, "all is well"),
        OutboxStatus(*well),
        HousekeepingStatus(*well),
        list(kits),
    )
