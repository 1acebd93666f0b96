"""What the faults do to the line: when answers come, and what becomes of their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from at.virtual.device import DataMode

if TYPE_CHECKING:
    from at.virtual.device import VirtualKit

_LOG_LINES = (
    "[00:00:{0:02d}.118,469] <inf> app: state {1}",
    "[00:00:{0:02d}.204,010] <wrn> sensor: OK, +CEREG: not mine, value {1}",
    "[00:00:{0:02d}.377,899] <dbg> net: ERROR counter {1}",
)


class Line(Protocol):
    """What of the modem's line a fault takes hold of."""

    def type_ahead(self, data: bytes) -> None:
        """Put bytes into the line as if somebody had typed them before."""

    def enter_data_mode(self, data: DataMode) -> None:
        """Take raw bytes from now on."""


class Mischief:
    """The faults of the line. Each is asked in the order of the bytes, so dice fall alike."""

    def __init__(self, kit: VirtualKit) -> None:
        self._kit = kit
        self._faults = kit.faults
        self._logged = 0
        self._spilt = False

    def begin(self, line: Line) -> None:
        """Set up what is wrong from the first moment."""
        if "open-quote" in self._faults:
            line.type_ahead(b'AT+COPS=1,2,"half')
        if "stuck-in-data-mode" in self._faults:
            # The Serial Modem says how it ended; another firmware has no data mode to end.
            line.enter_data_mode(DataMode(None, lambda _: self._kit.notify("#XDATAMODE: 0")))
        if "urc-flood" in self._faults:
            self._flood()

    def _flood(self) -> None:
        period_s = 1 / max(self._faults.number("urc-flood"), 0.001)

        def again() -> None:
            self._kit.notify("%CESQ: 54,2,20,3")
            self._kit.later(period_s, again)

        self._kit.later(period_s, again)

    def swallows(self, command: int) -> bool:
        """Tell whether a command, by its number, is never answered."""
        return "silent" in self._faults and command >= self._faults.number("silent")

    def time_taken(self, takes_s: float, command: int) -> float:
        """Return how long an answer takes, in seconds."""
        if "slow" in self._faults:
            takes_s += self._faults.number("slow")
        if "late-answer" in self._faults and command % 3 == 0:
            takes_s += self._faults.number("late-answer")
        return takes_s

    def resets(self, command: int) -> bool:
        """Tell whether the kit restarts in the middle of this command."""
        if "reset-mid-command" not in self._faults:
            return False
        return command % max(1, int(self._faults.number("reset-mid-command"))) == 0

    def before_answer(self, command: int) -> bytes:
        """Return what comes between a command and its answer."""
        extra = b""
        if "no-newline" in self._faults and not self._spilt:
            self._spilt = True
            extra += b"x" * int(self._faults.number("no-newline"))
        if "notice-mid-answer" in self._faults:
            extra += b"+CEREG: 2\r\n" if command % 2 else b'%XTIME: "40","62110221219440","00"\r\n'
        return extra

    def noise(self) -> bytes:
        """Return a log line, if there is log noise."""
        if "log-noise" not in self._faults:
            return b""
        self._logged += 1
        text = _LOG_LINES[self._logged % len(_LOG_LINES)]
        return text.format(self._logged % 60, self._logged).encode() + b"\r\n"

    def on_the_line(self, data: bytes) -> bytes:
        """Return what arrives of the bytes that were printed."""
        roll = self._kit.dice.random
        if "lost-bytes" in self._faults:
            share = self._faults.number("lost-bytes")
            data = bytes(byte for byte in data if roll() >= share)
        if "garbled-bytes" in self._faults:
            share = self._faults.number("garbled-bytes")
            turned = (b ^ (1 << self._kit.dice.randrange(8)) if roll() < share else b for b in data)
            data = bytes(turned)
        if "doubled-bytes" in self._faults:
            share = self._faults.number("doubled-bytes")
            data = b"".join(bytes([b]) * (2 if roll() < share else 1) for b in data)
        return data
