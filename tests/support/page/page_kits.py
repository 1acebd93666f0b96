"""Kits as the page shows them: one of each state, and a fleet."""

from datetime import timedelta
from typing import Any

from agent.daemon.snapshot import (
    AgentStatus,
    Cell,
    ConsoleStatus,
    Crash,
    FotaStatus,
    KitStatus,
    LastPosition,
    LikelyCause,
    LocationStatus,
    Place,
    Reading,
    State,
)
from tests.support.page.statuses import NOW, kit, status

CAUSE = LikelyCause(
    "emm-15",
    "certain",
    "The network denies registration: no suitable cells in tracking area (EMM 15).",
    '+CEREG: 3,"0901","02024721",7,0,15',
    "Ask the SIM's provider whether LTE-M is in its plan here.",
)


def heard(name: str, level: int, **link: Any) -> KitStatus:
    """Return a kit with an hour of readings around a level, a cell and a position."""
    history = [
        Reading(
            NOW - timedelta(minutes=minute),
            rsrp_dbm=level + (minute * 7) % 5,
            snr_db=(level + 110) / 2 + minute % 3,
            supply_mv=3710,
            temperature_c=24,
        )
        for minute in range(50, -1, -1)
    ]
    cell = Cell(plmn="00101", phys_cell_id=247, earfcn=6400, band=20)
    facts = {"model": "nRF9161", "firmware": "mfw_nrf91x1_2.0.4", "registration": 1, **link}
    one = kit(name, reading=history[-1], history=history, cell=cell, **facts)
    place = one.concern(LocationStatus)
    at = NOW - timedelta(minutes=9)
    place.position = LastPosition(at.isoformat(), "Wi-Fi", 63.42, 10.39, 22, None, 0, 7, [], [])
    place.track = [Place(63.42 + n * 1e-4, 10.39 - n * n * 3e-5) for n in range(4, -1, -1)]
    return one


def six() -> AgentStatus:
    """Return one kit of each state, and one that crashed."""
    early = NOW - timedelta(minutes=38)
    denied = heard("dock-3", -97, state=State.TROUBLE, since=early, cause=CAUSE, registration=3)
    crashed = heard("lift-4", -118, state=State.WELL)
    crashed.state = State.ATTENTION
    console = crashed.concern(ConsoleStatus)
    console.state, console.faults = State.ATTENTION, 3
    console.crash = Crash(NOW - timedelta(minutes=2), "hard fault in sensor_fetch", "0x0002f41e")
    working = heard("gate-2", -86)
    fota = working.concern(FotaStatus)
    working.state = fota.state = State.WORKING
    fota.stage, fota.done, fota.total, fota.proof = "download", 412_000, 676_000, "size-checked"
    lent = kit("left", state=State.UNKNOWN, busy_with="lent to west flash (PID 8123)")
    return status(denied, kit("yard-1", state=State.TROUBLE), crashed, lent, working,
                  heard("right", -78))  # fmt: skip


def many() -> AgentStatus:
    """Return 64 kits of every state."""
    states = list(State)
    return status(*(kit(f"slot-{n:02}", state=states[n % 5]) for n in range(64)))
