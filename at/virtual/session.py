"""What the virtual kit forgets at a restart: its mode, its subscriptions, what is under way."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Update:
    """Firmware that is being written: what kind, how large, and what of it is there."""

    kind: int
    size: int
    data: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Foretold:
    """Spans of `threshold_ms` and more are told, and once more `warning_ms` before their end."""

    warning_ms: int
    threshold_ms: int


@dataclass(slots=True)
class Subscriptions:
    """Which notices were asked for. Gone after functional mode 0 and after a restart."""

    cereg: int = 0
    cscon: int = 0
    cesq: int = 0
    cgerep: int = 0
    xtime: int = 0
    xsim: int = 0
    mdmev: int = 0
    cnec: int = 0
    xmodemsleep: Foretold | None = None
    xt3412: Foretold | None = None
    xtemp: int = 0
    cedrxp: int = 0


@dataclass(slots=True)
class Session:
    """What a restart forgets."""

    booted_at: float
    cmee: int = 0
    fun: int = 0
    echo: bool = False
    log: bool = False
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    registration: int = 0
    reject: tuple[int, int] | None = None
    serving_eci: int = 0
    follow_timer: int = 0
    connected: bool = False
    told_sleep: int = 0
    """The type of the sleep that goes on and was told of, 0 where there is none."""
    sleep_timers: list[int] = field(default_factory=list)
    sim_up: bool = False
    clock_offset_s: float | None = None
    """What to add to `now` for the modem's time; None while it has none."""
    measurement: tuple[int, int] | None = None
    """The search type and cell count of the measurement that runs."""
    measurement_timer: int = 0
    contexts: dict[int, tuple[str, str]] = field(default_factory=dict)
    update: Update | None = None
    fetching: bool = False
    fota_kind: int = 0
    gnss_on: bool = False
    gnss_status: int = 0
    gnss_timer: int = 0
    cloud_ready: bool = False
    cloud_sends_location: int = 0
    locating: bool = False
    wifi_mode: int = 0
    wifi_fields: int = 0x7FF
