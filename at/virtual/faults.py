"""Fault injection: the faults by name, which of them are on, and what each does.

`LineFaults` has the effects on the line: bytes, times, restarts. Those on what is behind it stand
there, by the fault's name, or in `kit_faults`.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from at.virtual.options import OptionError


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `default` is its argument where none is given, None where it takes none.

    A number is from `least` to `most`, and `whole` or not.
    """

    description: str
    default: float | str | None = None
    least: float = 0
    most: float = 10_000_000
    whole: bool = False

    @property
    def takes(self) -> str:
        """What it takes as argument, in words; "" where it takes none."""
        if self.default is None:
            return ""
        if isinstance(self.default, str):
            return "a text"
        return f"a {'whole ' if self.whole else ''}number from {self.least:g} to {self.most:.10g}"


def written(name: str, fault: Fault) -> str:
    """Return a fault with its usual argument, as `--fault` takes it."""
    if fault.default is None:
        return name
    default = fault.default
    return f"{name}={default:g}" if isinstance(default, float) else f"{name}={default}"


FAULTS = {
    "silent": Fault("answers nothing from command ARG on", 1.0, whole=True),
    "slow": Fault("every answer comes ARG seconds later", 2.0, most=3600),
    "late-answer": Fault("every third answer comes ARG seconds late", 8.0, most=3600),
    "lost-bytes": Fault("ARG of the bytes it prints are lost", 0.02, most=1),
    "garbled-bytes": Fault("ARG of the bytes it prints have one bit turned", 0.02, most=1),
    "doubled-bytes": Fault("ARG of the bytes it prints come twice", 0.02, most=1),
    "reset-mid-command": Fault(
        "restarts in the middle of every command number ARG", 3.0, whole=True
    ),
    "echo": Fault("echoes commands, as no AT host does"),
    "log-noise": Fault("log lines before, between and after the lines of answers"),
    "notice-mid-answer": Fault("a notice between each command and its answer"),
    "cmng-refused": Fault(
        "credentials are neither written nor deleted: error ARG", 514.0, most=999, whole=True
    ),
    "memory-full": Fault("no room for another credential (515)"),
    "power-warning": Fault("the power-off warning blocks writing to flash (528)"),
    "line-ends-changed": Fault("line ends in written credentials become CR LF"),
    "jwt-failed": Fault("%JWT fails with error ARG", 525.0, most=999, whole=True),
    "keygen-failed": Fault("%KEYGEN fails with error ARG", 523.0, most=999, whole=True),
    "no-time": Fault("the network never gives a time"),
    "no-sim": Fault("there is no SIM"),
    "sim-failed": Fault("the SIM does not work"),
    "sim-pin": Fault("the SIM waits for its PIN, 1234"),
    "sim-puk": Fault("the SIM waits for its PUK"),
    "sim-blocked": Fault("the PUK of the SIM is blocked"),
    "sim-locked": Fault("the device is locked to other SIMs"),
    "supply": Fault("%XVBAT reads ARG millivolts", 3000.0, most=100_000, whole=True),
    "temperature": Fault("%XTEMP reads ARG degrees", 70.0, least=-100, most=300, whole=True),
    "weak-signal": Fault("every cell is ARG dB weaker", 40.0, most=200, whole=True),
    "weak": Fault("cells are heard, ARG dB too weak to register", 10.0, most=50, whole=True),
    "interference": Fault("cells are strong, their SNR ARG dB lower", 40.0, most=60, whole=True),
    "denied": Fault("the network refuses it with EMM cause ARG", 15.0, most=255, whole=True),
    "apn-refused": Fault(
        "the network refuses its data connection with ESM cause ARG", 27.0, most=255, whole=True
    ),
    "no-address": Fault("registers, and gets no IP address"),
    "forbidden": Fault("all networks are forbidden to its SIM"),
    "band-locked": Fault("locked to band ARG, in which it hears no cell", 13.0, 1, 88, whole=True),
    "plmn-locked": Fault("the network ARG was chosen by hand, and is not here", "99999"),
    "wrong-mode": Fault("starts in the system mode ARG, which nothing here serves", "0,1,0,0"),
    "psm-refused": Fault("the network grants no PSM"),
    "edrx-refused": Fault("the network grants no eDRX"),
    "supply-low": Fault("its supply is too low: it goes offline by itself"),
    "overheated": Fault("it is too hot: it goes offline by itself"),
    "reset-loop": Fault("it was reset too often, and does not attach for half an hour"),
    "no-imei": Fault("no IMEI was written in production"),
    "not-calibrated": Fault("its radio was not calibrated in production"),
    "not-registered": Fault("never registers: +CEREG stays at ARG", 2.0, most=90, whole=True),
    "old-firmware": Fault("the modem firmware is ARG", "mfw_nrf9160_1.2.8"),
    "no-cells": Fault("cell measurements find nothing"),
    "stuck-in-data-mode": Fault("starts in data mode, left by +++"),
    "open-quote": Fault("starts with half a command and an open quote in its buffer"),
    "urc-flood": Fault("ARG notices a second", 100.0),
    "no-newline": Fault(
        "prints ARG bytes without a line end at the first command", 20000.0, whole=True
    ),
    "crash": Fault("the application crashes after ARG seconds and prints its core dump", 10.0),
    "provisioning-failed": Fault(
        "the provisioning client of the Serial Modem ends with status ARG", -1.0, -6, -1, whole=True
    ),
    "provisioning-rounds": Fault(
        "without a service, the provisioning client has the radio off and on ARG times",
        1.0,
        most=99,
        whole=True,
    ),
    "provisioning-silent": Fault("the provisioning client says nothing after its OK"),
    "not-onboarded": Fault("the cloud of an nRF93M1 does not know it: 4.01"),
    "cloud-session-kept": Fault("an nRF93M1 goes on with the session of its last request"),
    "late-location": Fault("an nRF93M1 gives its position after OK, as a notice"),
    "release-offered": Fault("the cloud of the kit has the release ARG", "mfw_nrf93m1_1.6.0"),
    "flash-failed": Fault("firmware that was written does not verify"),
    "update-reverted": Fault("new firmware starts once, then the old one is put back"),
}


class Faults:
    """The faults that are on, each with its argument."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._on: dict[str, float | str] = {}
        for entry in names:
            self.switch_on(entry)

    def switch_on(self, entry: str) -> None:
        """Switch a fault on, NAME or NAME=ARG. Raises OptionError."""
        name, given, argument = entry.partition("=")
        self._on[name] = _argument(name, _known(name), argument if given else None)

    def switch_off(self, name: str) -> None:
        """Switch a fault off, if it is on. Raises OptionError."""
        _known(name)
        self._on.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return name in self._on

    @property
    def names(self) -> frozenset[str]:
        """The names of those that are on."""
        return frozenset(self._on)

    def number(self, name: str) -> float | None:
        """Return the argument of a fault that takes a number, None if it is off."""
        return float(self._on[name]) if name in self else None

    def whole(self, name: str) -> int | None:
        """Return likewise, as a whole number."""
        return int(self._on[name]) if name in self else None

    def text(self, name: str) -> str:
        """Return the argument of a fault that takes a text, "" if it is off."""
        return str(self._on.get(name, ""))


def _known(name: str) -> Fault:
    """Return the fault of a name. Raises OptionError."""
    fault = FAULTS.get(name)
    if fault is None:
        near = get_close_matches(name, FAULTS, n=1, cutoff=0.0)[0]
        raise OptionError(
            f"no such fault: {name!r}; the nearest is {near}",
            hint=f"did you mean {near!r}? `--fault help` lists all",
        )
    return fault


def _argument(name: str, fault: Fault, argument: str | None) -> float | str:
    if argument is None:
        return 0.0 if fault.default is None else fault.default
    hint = f"write {written(name, fault)}; `--fault help` lists all"
    if fault.default is None:
        raise OptionError(f"the fault {name} takes no argument, yet got {argument!r}", hint=hint)
    refused = OptionError(f"the fault {name} takes {fault.takes}, not {argument!r}", hint=hint)
    if isinstance(fault.default, str):
        if not argument:
            raise refused
        return argument
    try:
        number = float(argument)
    except ValueError as error:
        raise refused from error
    if not fault.least <= number <= fault.most or (fault.whole and number % 1):
        raise refused
    return number


_LOG_LINES = (
    "[00:00:{0:02d}.118,469] <inf> app: state {1}",
    "[00:00:{0:02d}.204,010] <wrn> sensor: OK, +CEREG: not mine, value {1}",
    "[00:00:{0:02d}.377,899] <dbg> net: ERROR counter {1}",
)


class LineFaults:
    """The effect of faults on the line: when answers come, and how their bytes are damaged.

    Random numbers are drawn in the order of the bytes, so that a seed repeats a run.
    """

    def __init__(self, faults: Faults, random_numbers: random.Random) -> None:
        self._faults = faults
        self._random = random_numbers
        self._log_lines = 0
        self._overlong_line_sent = False

    def start_flood(
        self, notify: Callable[[str], None], schedule: Callable[[float, Callable[[], None]], object]
    ) -> None:
        """Send notices for ever, if there is a flood; `schedule` takes seconds and an action."""
        if (rate := self._faults.number("urc-flood")) is None:
            return
        period_s = 1 / max(rate, 0.001)

        def send() -> None:
            notify("%CESQ: 54,2,20,3")
            schedule(period_s, send)

        schedule(period_s, send)

    def leaves_unanswered(self, command: int) -> bool:
        """Return whether a command, by its number, is never answered."""
        first = self._faults.number("silent")
        return first is not None and command >= first

    def answer_delay(self, takes_s: float, command: int) -> float:
        """Return how long an answer takes, in seconds; `takes_s` without a fault."""
        late_s = self._faults.number("late-answer") if command % 3 == 0 else None
        return takes_s + (self._faults.number("slow") or 0.0) + (late_s or 0.0)

    def resets_during(self, command: int) -> bool:
        """Return whether the kit restarts in the middle of a command, by its number."""
        every = self._faults.whole("reset-mid-command")
        return every is not None and command % max(1, every) == 0

    def before_answer(self, command: int) -> bytes:
        """Return the bytes between a command and its answer."""
        extra = b""
        if (size := self._faults.whole("no-newline")) and not self._overlong_line_sent:
            self._overlong_line_sent = True
            extra += b"x" * size
        if "notice-mid-answer" in self._faults:
            extra += b"+CEREG: 2\r\n" if command % 2 else b'%XTIME: "40","62110221219440","00"\r\n'
        return extra

    def log_line(self) -> bytes:
        """Return the next line of log noise, b"" where there is none."""
        if "log-noise" not in self._faults:
            return b""
        self._log_lines += 1
        text = _LOG_LINES[self._log_lines % len(_LOG_LINES)]
        return text.format(self._log_lines % 60, self._log_lines).encode() + b"\r\n"

    def damaged(self, data: bytes) -> bytes:
        """Return printed bytes as they arrive, damaged by the faults."""
        roll = self._random.random
        if (share := self._faults.number("lost-bytes")) is not None:
            data = bytes(byte for byte in data if roll() >= share)
        if (share := self._faults.number("garbled-bytes")) is not None:
            turned = (b ^ (1 << self._random.randrange(8)) if roll() < share else b for b in data)
            data = bytes(turned)
        if (share := self._faults.number("doubled-bytes")) is not None:
            data = b"".join(bytes([b]) * (2 if roll() < share else 1) for b in data)
        return data
