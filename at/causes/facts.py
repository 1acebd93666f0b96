"""Facts of a modem's lines, the newest of each name, and what follows from one for others. Pure."""

from msgspec import Struct

from at.commands.functional_mode import OFF_MODES
from at.commands.registration import REGISTERED
from at.protocol.boot_stages import BootStages
from at.transcripts.logs.lines import seconds_between

Value = int | float | str
_DENIED = 3
_TRYING = frozenset({0, 2, 4})
_LONG_S, _SLOW_S = 60, 120
_QUICK_S = 90
"""The modem counts a reset in its first minute (Nordic white paper 42); it starts after the kit."""
BESIDES_LTE = frozenset({30, 31, 40, 41})
"""The functional modes that turn GNSS or the UICC on and off, and leave LTE as it is."""
ZEROS = frozenset("0.:")
"""What stands where an address would, if there is none."""


class Fact(Struct, frozen=True):
    """A value, the line that says it and that line's number, from 1; `order` grows with time."""

    value: Value
    line: str
    number: int
    order: int


class Facts(dict[str, Fact]):
    """The facts by name. What is noted rests on the line at which the reader is."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.number, self.order = "", 0, 0
        self.at_s: float | None = None
        self._run: tuple[float, float] | None = None
        """The first time and the last one since the kit started."""
        self.turns_off = False
        """Whether a command is on its way that switches the modem off."""
        self._slow = 0
        self._searching_since: float | None = None
        self._searches = False
        self._stages = BootStages()
        self._starts = True
        """Whether it has not been registered since it was started or switched on."""

    @property
    def is_on(self) -> bool:
        """Whether the modem is known to be on."""
        return "fun" in self and not self.is_off and self["fun"].value not in BESIDES_LTE

    @property
    def is_off(self) -> bool:
        """Whether it is known to be off, or on its way; neither this nor `is_on` if not known."""
        fun = self.get("fun")
        return self.turns_off or (fun is not None and fun.value in OFF_MODES)

    def begin_line(self, at_s: float | None) -> None:
        """Note the time of the line at which the reader is."""
        self.at_s = at_s
        if at_s is not None:
            self._run = (at_s if self._run is None else self._run[0], at_s)

    def conclude(self) -> None:
        """Note what follows from several."""
        self.pop("search", None)
        about, reached = self.get("stat"), self.get("reached")
        if about and reached and reached.order > about.order:
            self._end_search()
        length: Value = self._search_length()
        if not length and (tried := self.get("tried")) is not None:
            length = tried.value  # it was switched off after that
        if length and about is not None:
            self["search"] = Fact(length, about.line, about.number, about.order)

    def note(self, name: str, value: Value) -> None:
        """Note a fact, and what follows from it."""
        if name == "address" and ZEROS.issuperset(str(value)):
            return
        before = self.get(name)
        self[name] = Fact(value, self.line, self.number, self.order)
        if name == "stat" and isinstance(value, int):
            self._note_status(value, None if before is None else before.value)
        elif name == "fun" and isinstance(value, int):
            if before is None or before.value != value:
                self._note_mode(value, was_off=before is not None and before.value in OFF_MODES)
        elif name == "other_stat" and "+CEREG.stat" not in self:
            if value or "this_maker" not in self:  # there it says nothing of LTE
                self.note("stat", value)
        elif name == "rrc_idle":
            self.count("drops")
        elif name in {"boot", "stage"}:
            if self._stages.begins(value if isinstance(value, str) else None):
                self._note_boot()
        elif name == "crashed":
            self.note("sockets_shut", 1)
        elif name == "address":
            self.pop("no_address", None)

    def count(self, name: str) -> None:
        """Note that something was once more."""
        before = self.get(name)
        self.note(name, int(before.value) + 1 if before else 1)

    def _note_boot(self) -> None:
        """Note a start, and how many there were one shortly after the other.

        A modem that was on is off until firmware turns it on, of which a log may say nothing.
        """
        if self.pop("restart_told", None) is None and "boots" in self:
            self.count("restarts")
        self.count("boots")
        if self.is_on:
            self.pop("fun")
        self._starts = True
        ran_s = seconds_between(*self._run) if self._run else 0.0
        quick = self.get("quick_boots")
        self.note("quick_boots", int(quick.value) + 1 if quick and ran_s <= _QUICK_S else 1)
        self._run = None
        self._note_restart()

    def _note_restart(self) -> None:
        """Note that a modem that crashed is back; a socket's error up to here was the crash's."""
        if self.pop("sockets_shut", None):
            self.pop("net_errno_110", None)

    def _note_status(self, stat: int, before: Value | None) -> None:
        if stat in REGISTERED:
            if self._starts and self._seconds_searched() > _SLOW_S:
                self._slow += 1
                self.note("slow_searches", self._slow)
            if before not in REGISTERED:
                for past in ("emm", "esm", "emm_last", "esm_last", "tried", "refused", "detached"):
                    self.pop(past, None)
            self.note("registered", 1)
            self._note_restart()
            self.note("sim_ready", 1)
            self._starts = False
            self._end_search()
            self.pop("drops", None)
        elif stat == _DENIED:
            self._end_search()
            self.note("refused", 1)
        elif stat in _TRYING and (stat != 0 or self.is_on):
            if not self._searches or self._seconds_searched() < 0:
                self._searches, self._searching_since = True, self.at_s
        else:
            self._end_search()
            if self.is_off:
                self.note("off_seen", 1)

    def _note_mode(self, fun: int, *, was_off: bool) -> None:
        self.pop("off_seen", None)
        if fun in OFF_MODES:
            self._starts = True
            for past in ("rsrp_dbm", "snr_db", "address"):
                self.pop(past, None)
            if self._searches or "refused" in self:
                self.note("tried", self._search_length() or "unknown")
            self._end_search()
            if fun == 0:
                self._slow = 0
                self.pop("boots", None)
                self.pop("quick_boots", None)
                self.pop("slow_searches", None)
        else:
            for past in ("tried", "searched", *(("stat",) if was_off else ())):
                self.pop(past, None)

    def _end_search(self) -> None:
        self._searches, self._searching_since = False, None

    def _search_length(self) -> str:
        """Return how long the modem searches in vain: "long", "short", "unknown"; "" for not."""
        if not self._searches:
            return ""
        seconds = self._seconds_searched()
        if "searched" in self or seconds >= _LONG_S:
            return "long"
        return "short" if seconds else "unknown"

    def _seconds_searched(self) -> float:
        if self._searching_since is None or self.at_s is None:
            return 0.0
        return seconds_between(self._searching_since, self.at_s)
