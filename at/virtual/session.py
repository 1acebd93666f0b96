"""What a virtual kit forgets when it restarts: its functional mode, what it is subscribed to."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol


class ModemMode(IntEnum):
    """<fun> of +CFUN. Not the driver's enumeration: no code is shared with what is tested."""

    OFF = 0
    NORMAL = 1
    RECEIVE_ONLY = 2
    FLIGHT = 4
    LTE_OFF = 20
    LTE_ON = 21
    GNSS_OFF = 30
    GNSS_ON = 31
    UICC_OFF = 40
    UICC_ON = 41
    FLIGHT_UICC_ON = 44


LTE_MODES = frozenset({ModemMode.NORMAL, ModemMode.RECEIVE_ONLY, ModemMode.LTE_ON})


@dataclass(slots=True)
class Update:
    """Firmware that is being written: its kind, its size in bytes, and the bytes so far."""

    kind: int
    size: int
    data: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class AdvanceWarning:
    """Parameters of a subscription to sleeps and updates, in milliseconds.

    A span of `threshold_ms` or more is announced when it begins, `warning_ms` before its end (where
    that is not 0), and at its end.
    """

    warning_ms: int
    threshold_ms: int


@dataclass(slots=True)
class Subscriptions:
    """The notices that the host subscribed to. Functional mode 0 and a restart end them."""

    cereg: int = 0
    cscon: int = 0
    cesq: int = 0
    cgerep: int = 0
    xtime: int = 0
    xsim: int = 0
    mdmev: int = 0
    cnec: int = 0
    xmodemsleep: AdvanceWarning | None = None
    xt3412: AdvanceWarning | None = None
    cedrxp: int = 0


class ProvisioningClient(Protocol):
    """A provisioning session, which waits for the radio to be off or on."""

    is_followed: bool
    """Whether another begins when it ends."""

    def mode_changed(self) -> None:
        """Look at the functional mode and the registration again."""


@dataclass(slots=True)
class Session:
    """The state that a restart clears."""

    booted_at: float
    cmee: int = 0
    fun: ModemMode = ModemMode.OFF
    echo: bool = False
    log: int = 0
    """Mode of #XLOG."""
    trace: bool = False
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    registration: int = 0
    reject: tuple[int, int] | None = None
    serving_eci: int = 0
    reselection_timer: int = 0
    connected: bool = False
    announced_sleep: int = 0
    """The type of the sleep that is in progress and was announced, 0 for none."""
    sleep_timers: list[int] = field(default_factory=list)
    sim_up: bool = False
    clock_offset_s: float | None = None
    """Difference between the modem's time and `now`; None while the modem has no time."""
    measurement: tuple[int, int] | None = None
    """Search type and cell count of the measurement in progress."""
    measurement_timer: int = 0
    contexts: dict[int, tuple[str, str]] = field(default_factory=dict)
    allocated: set[int] = field(default_factory=set)
    """Identifiers of contexts that %XNEWCID gave."""
    update: Update | None = None
    fetching: bool = False
    downloading: bool = False
    gnss_on: bool = False
    gnss_status: int = 0
    gnss_timer: int = 0
    provisioning: ProvisioningClient | None = None
    """The session of #XNRFPROV that is under way."""
    stored_bytes: int = 0
    """Observations that wait for their upload."""
    forwarding: bool = False
    cloud_ready: bool = False
    queued_chunks: int = 0
    """Chunks of an nRF93M1 that wait to be uploaded."""
    cloud_joined: bool = False
    """Whether there was a connection since the start."""
    cloud_sends_location: int = 0
    locating: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    """Settings that a restart clears, by the command's name."""
    band_lock: str = ""
    plmn_lock: str = ""
    """The network that was chosen by hand."""
    wifi_mode: int = 0
    wifi_fields: int = 0x7FF
