"""The virtual kit: its state, what its commands answer, and its scheduled actions.

Time is an argument: `now` is in seconds on any clock that only goes forward, and `unix_time` is
the time that the network gives. Nothing here waits.
"""

import itertools
import random
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from at.virtual.kit_faults import KitFaults
from at.virtual.options import MODELS, MODULE, VirtualOptions, firmware_version
from at.virtual.radio_world import Coordinates, MeasuredCell, SimulatedCell, load_world
from at.virtual.session import LTE_MODES, Session
from at.virtual.state import SavedState

LTE_M, NB_IOT, NTN_NB_IOT = 7, 9, 14


@dataclass(slots=True)
class DataMode:
    """The line receives raw bytes: `left` of them, or until +++ where that is None.

    `done` is called with all of them at the end.
    """

    left: int | None
    done: Callable[[bytes], None]
    received: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a command: body lines, then OK, ERROR or +CME ERROR.

    `code` is the number of the error, or None for a plain ERROR; `takes_s` is the time until the
    final result.
    """

    lines: tuple[str, ...] = ()
    failed: bool = False
    code: int | None = None
    takes_s: float = 0.0
    data: DataMode | None = None
    """The data mode that follows the reply."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a server answered to a request of the kit."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request that the kit wants sent: a GET, or a POST where it has a body.

    `done` is called with the answer, None where there was none.
    """

    url: str
    done: Callable[[Fetched | None], None]
    headers: tuple[str, ...] = ()
    body: bytes | None = None


def ok(*lines: str, takes_s: float = 0.0) -> Reply:
    """Return a reply that ends in OK."""
    return Reply(lines, takes_s=takes_s)


def fail(code: int | None = None) -> Reply:
    """Return ERROR, or +CME ERROR with `code` once +CMEE=1."""
    return Reply(failed=True, code=code)


class VirtualKit:
    """The kit. Families of commands read and change it; `notify` and `schedule` act in time."""

    def __init__(
        self,
        options: VirtualOptions,
        *,
        now: float,
        unix_time: float,
        saved: SavedState | None = None,
    ) -> None:
        self.faults = KitFaults(options.faults)
        options = options.completed()
        self.options = options
        self.model = MODELS[options.model]
        self.saved = saved or SavedState.fresh(options)
        self.now = now
        self.switched_on_at = now
        self.unix_offset_s = unix_time - now
        self.random = random.Random(options.seed)  # noqa: S311 - for faults, not for keys
        self.world = load_world()
        self.session = self._fresh_session()
        self.session.plmn_lock = self.faults.text("plmn-locked")
        if (band := self.faults.whole("band-locked")) is not None:
            self.session.band_lock = f"{1 << (band - 1):088b}"
        self.saved.system_mode = self.faults.wrong_mode or self.saved.system_mode
        self.restarts = 0
        self.notices: list[str] = []
        """Notices in the order in which they arose; the owner of the line removes them."""
        self.console: list[str] = []
        """Lines that the application printed; the owner of the line removes them."""
        self.fetches: list[Fetch] = []
        """Requested downloads; the runner of the kit removes them."""
        self.restart_requested = False
        self.is_module = options.model == MODULE
        """Whether it is an nRF93M1, whose commands are its own."""
        self.forwarded: list[bytes] = []
        """Chunks of the host's that it sent to the observability service."""
        self.loader_lines: list[str] = []
        """What its loader prints when it starts next."""
        self.powered = True
        self.bootloader_mode = False
        self.bootloader_written = False
        self.position_hook: Coordinates | None = None
        self._timers: list[tuple[float, int, Callable[[], None]]] = []  # the next one first
        self._numbers = itertools.count(1)

    @property
    def firmware(self) -> str:
        """The revision of the modem firmware, as in +CGMR."""
        return self.faults.firmware(self.saved.firmware)

    def at_least(self, *version: int) -> bool:
        """Return whether the modem firmware has the features of `version` of the nRF9160's."""
        own = firmware_version(self.firmware)
        if self.knows_satellites:  # a family that began again at 1.0.0
            return True
        return own >= version or (self.model.family != "nrf9160" and own >= (2, 0, 0))

    @property
    def knows_satellites(self) -> bool:
        """Whether this is firmware for satellites."""
        return "ntn" in self.firmware

    @property
    def generation(self) -> int:
        """The generation of the Serial Modem's commands: 1, or 2 from its version 1.99 on."""
        major, minor = self.saved.app_version.split(".")[:2]
        return 2 if (int(major), int(minor)) >= (1, 99) else 1

    @property
    def uptime_ms(self) -> int:
        """Milliseconds since the modem started."""
        return round((self.now - self.session.booted_at) * 1000)

    @property
    def active(self) -> bool:
        """Whether LTE is on: commands that write to flash are then refused (518)."""
        return self.session.fun in LTE_MODES

    @property
    def registered(self) -> bool:
        """Whether the kit is registered, at home or roaming."""
        return self.session.registration in {1, 5}

    @property
    def is_served(self) -> bool:
        """Whether there is a network that the kit may use, as it is set."""
        band, lock = self.faults.whole("band-locked"), self.session.band_lock
        locked = band is not None and lock[-band:][:1] == "1"
        locked = locked or bool(self.session.plmn_lock)
        mode = self.faults.wrong_mode
        return bool(self.cells_in_range()) and not locked and self.saved.system_mode != mode

    @property
    def access_technology(self) -> int:
        """LTE-M, NB-IoT or NB-IoT by satellite, by the system mode."""
        lte_m, nb_iot, _, preference = self.saved.system_mode
        if self.saved.by_satellite and not (lte_m or nb_iot):
            return NTN_NB_IOT
        return NB_IOT if nb_iot and (not lte_m or preference == 2) else LTE_M

    @property
    def position(self) -> Coordinates:
        """The true position of the kit."""
        return self.position_hook or self.world.position(self.now - self.switched_on_at)

    def cells_in_range(self) -> list[MeasuredCell]:
        """Return the cells that the modem can measure, the strongest first."""
        cells = self.world.cells(self.position)
        if self.access_technology == NTN_NB_IOT:
            cells = [replace(cell, cell=_of_satellite(cell.cell)) for cell in cells[:1]]
        return self.faults.heard(cells)

    def modem_time(self) -> float | None:
        """Return the modem's time in seconds of the Unix epoch; None while it has none."""
        offset = self.session.clock_offset_s
        return None if offset is None else self.now + offset

    def delay(self, seconds: float) -> float:
        """Return a duration in seconds of the real modem; 0 with `VirtualOptions.instant`."""
        return 0.0 if self.options.instant else seconds

    def schedule(self, seconds: float, action: Callable[[], None]) -> int:
        """Schedule `action` for that many seconds from now; return the number for `cancel`."""
        number = next(self._numbers)
        insort(self._timers, (self.now + seconds, number, action))
        return number

    def schedule_in_session(self, seconds: float, action: Callable[[], None]) -> int:
        """Schedule likewise; a restart before then ends it."""
        session = self.session
        return self.schedule(seconds, lambda: action() if self.session is session else None)

    def cancel(self, number: int) -> None:
        """Cancel a scheduled action. A number of an action that already ran is ignored."""
        self._timers = [timer for timer in self._timers if timer[1] != number]

    def notify(self, line: str) -> None:
        """Queue a notice for the AT port."""
        self.notices.append(line)

    def print(self, lines: Iterable[str]) -> None:
        """Queue lines that the application prints on its console."""
        self.console.extend(lines)

    @property
    def next_at(self) -> float | None:
        """When the next action is due, on the clock of `now`; None without one."""
        return self._timers[0][0] if self._timers else None

    def run_next(self, until: float) -> bool:
        """Run the next action that is due by `until`; return whether there was one."""
        due = self.next_at
        if due is None or due > until:
            return False
        _, _, action = self._timers.pop(0)
        self.now = max(self.now, due)
        action()
        return True

    def schedule_restart(self, seconds: float) -> None:
        """Restart the kit after that many seconds, so that the reply is sent first."""

        def request_restart() -> None:
            self.restart_requested = True

        self.schedule(self.delay(seconds), request_restart)

    def restart(self) -> None:
        """Restart: clear the session and scheduled actions, and start pending firmware."""
        self._timers.clear()
        self.notices.clear()
        self.fetches.clear()
        self.restart_requested = False
        self.restarts += 1
        saved = self.saved
        saved.app_version = self._started(saved.app_version, saved.pending_image)
        saved.pending_image = ""
        self._start_modem()
        self.session = self._fresh_session()

    def _fresh_session(self) -> Session:
        return Session(booted_at=self.now, echo=self.options.dialect == MODULE)

    def power_off(self) -> None:
        """Turn the module off: it answers OK, says so, and then nothing."""
        self.powered = False
        self.schedule(0.0, lambda: self.notify("POWERED DOWN"))

    def restart_modem(self) -> None:
        """Restart the modem alone: functional mode 0, nothing subscribed, no time."""
        self._start_modem()
        old = self.session
        self.session = Session(booted_at=self.now, echo=old.echo, log=old.log)
        self.report_update()

    def _start_modem(self) -> None:
        saved = self.saved
        saved.firmware = self._started(saved.firmware, saved.pending_modem)
        saved.pending_modem = ""

    def _started(self, running: str, pending: str) -> str:
        """Return which of two firmwares runs after a start; "" is none pending."""
        if pending and "update-reverted" in self.faults:
            self.saved.fota_report = self.saved.fota_report and "5,3"
            return running
        return pending or running

    def report_update(self) -> None:
        """Report once how an update from a URL ended, after its firmware has started."""
        if self.saved.fota_report and not (self.saved.pending_image or self.saved.pending_modem):
            report, self.saved.fota_report = self.saved.fota_report, ""
            self.schedule(0.0, lambda: self.notify(f"#XFOTA: {report}"))


def _of_satellite(cell: SimulatedCell) -> SimulatedCell:
    """Return a cell of the radio environment as a satellite's: operator, channel and band."""
    return replace(cell, plmn="90198", earfcn=229251, band=256)
