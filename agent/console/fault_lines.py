"""Faults and restarts that a kit's firmware prints as text. Pure.

***** MPU FAULT *****                                  heading: Zephyr's fault handlers
>>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0      end: the kernel gives up
*** Booting nRF Connect SDK v2.7.0 ***                 a start; `Using ...` is its second line
#XMODEM: FAULT,0x1,0x2                                 a restart of the modem; INIT is its end

Also the headings of TF-M, ESP-IDF and Linux, and the names that older kernels used.
"""

import re
from dataclasses import dataclass, replace

from at.protocol.boot_stages import HAND_OVERS, BootStages

_FATAL = re.compile(r">>> ZEPHYR FATAL ERROR (\d{1,9}): (.+)")
_FAULT = re.compile(r"\*{5} (.+?) \*{5}")
# An application puts asterisks around its name, too.
_IN_FAULT = re.compile(
    r"\bfault|exception|error|abort|fail|oops|panic|interrupt|overflow", re.IGNORECASE
)
_HEADING = re.compile(
    r"ASSERTION FAIL.*|\bassert(?:ion)? failed\b.*|\bFATAL ERROR: .+|Guru Meditation Error: .+"
    r"|\babort\(\) was called .+|Kernel panic - not syncing.*|Unable to handle kernel .+"
    r"|Internal error: Oops.*",
    re.IGNORECASE,
)
_ADDRESS = re.compile(  # of Zephyr; of TF-M, on a line of its own among the registers
    r"(?:Faulting instruction address(?: \([^)]{1,40}\):| =) |^\s*PC: +)(0x[0-9a-fA-F]{1,16})"
)
_THREAD = re.compile(r"Current thread(?: ID)?(?::| =) (0x[0-9a-fA-F]{1,16})(?: \(([^)]*)\))?")
_BANNER = re.compile(r"\*{3,5} Booting (.+?) +\*{3,5}")
_ESP_RESET = re.compile(r"rst:0x[0-9a-f]+ \(\w+\)")
_BOOTLOADERS = ("MCUboot",)


@dataclass(frozen=True, slots=True)
class FaultText:
    """A line of a crash report; None for what the line does not say."""

    line: str
    what: str
    reason: int | None = None
    """The number after ZEPHYR FATAL ERROR."""
    address: int | None = None
    """The address of the instruction at fault."""
    thread: str | None = None
    first: bool = True
    """Whether it is the first line of its crash: each crash has one such line."""

    @property
    def is_detail(self) -> bool:
        """Whether the line only adds to a report that has a heading or an end."""
        return self.address is not None or self.thread is not None


@dataclass(frozen=True, slots=True)
class Reboot:
    """A boot banner."""

    line: str
    banner: str

    @property
    def is_start(self) -> bool:
        """Whether a start counts by it: not by a bootloader's, which the application's follows."""
        return not self.banner.startswith(_BOOTLOADERS)


class Stage(Reboot):
    """The banner of a further stage of a start that counts already."""

    is_start = False


def read_fault(line: str) -> FaultText | Reboot | None:
    """Return what `line` says about a crash or a restart, None for an ordinary line."""
    if "***" in line:
        if match := _BANNER.search(line):
            return Reboot(line, match[1])
        if (match := _FAULT.search(line)) and _IN_FAULT.search(match[1]):
            return FaultText(line, match[1].lower())
    if match := _FATAL.search(line):
        return FaultText(line, match[2], reason=int(match[1]))
    if match := _ADDRESS.search(line):
        return FaultText(line, "faulting instruction", address=int(match[1], 16))
    if match := _THREAD.search(line):
        return FaultText(line, "current thread", thread=match[2] or match[1])
    if match := _HEADING.search(line):
        return FaultText(line, match[0])
    if match := _ESP_RESET.match(line):
        return Reboot(line, match[0])
    return None


class CrashCounter:
    """Finds the first line of each crash, so that a crash is counted once."""

    def __init__(self) -> None:
        self._open = False

    def mark_first(self, item: FaultText | Reboot) -> FaultText | Reboot:
        """Return `item` with `first` set."""
        if isinstance(item, Reboot):
            self._open = False
            return item
        if item.is_detail:
            return replace(item, first=False)
        # A fault that escalates has two headings before its end; an assertion may end nothing.
        goes_on = self._open and "assert" not in item.what.lower()
        self._open = item.reason is None
        return replace(item, first=not goes_on)


class StartReader:
    """Tells a start from its further stages, of which bootloaders may have the same banner."""

    def __init__(self) -> None:
        self._stages = BootStages()
        self._counts = False

    def read(self, line: str) -> None:
        """Read a line that is no banner: a bootloader may hand over to what prints the next one."""
        hand_over = next((each for each in HAND_OVERS if each in line), "")
        if hand_over and self._stages.begins(hand_over):
            self._counts = False

    def mark(self, banner: Reboot) -> Reboot:
        """Return `banner`, as a Stage if it is of a start that counts already."""
        if self._stages.begins():
            self._counts = False
        if self._counts:
            return Stage(banner.line, banner.banner)
        self._counts = banner.is_start
        return banner


BOOT_S = 10.0
"""Seconds from the first line of a start to its last: Serial Modem needs about 2 s."""

_MODEM_FAULT, _MODEM_INIT, _MODEM_READY = "#XMODEM: FAULT", "#XMODEM: INIT", "ready"


class RestartCounter:
    """Counts restarts from the lines that announce one, with their times in seconds.

    A kit announces one start several times: its bootloader, its kernel, its AT host, on one port or
    on two. The order of lines from two ports is not that of the kit.
    """

    def __init__(self) -> None:
        self.count = 0
        self._began = float("-inf")
        self._seen: set[str] = set()

    def is_new(self, line: str, now_s: float) -> bool:
        """Return whether `line`, read at `now_s`, is the first of another restart."""
        announced = _announcement(line)
        new = now_s - self._began >= BOOT_S or self._contradicts(announced)
        if announced == _MODEM_INIT and _MODEM_FAULT in self._seen:
            self._seen.remove(_MODEM_FAULT)  # what it began is over, however long that took
            new = False
        if new:
            self.count += 1
            self._began = now_s
            self._seen.clear()
        self._seen.add(announced)
        return new

    def _contradicts(self, announced: str) -> bool:
        """Return whether a kit that starts once cannot print this after what it printed."""
        if announced == _MODEM_FAULT:
            return True
        # A boot may show one banner twice, for two of its stages, but not once it is done.
        return announced in self._seen and (announced == _MODEM_READY or _MODEM_READY in self._seen)


def _announcement(line: str) -> str:
    if line.startswith("***"):
        return line
    for known in (_MODEM_FAULT, _MODEM_INIT):
        if line.startswith(known):
            return known
    return _MODEM_READY
