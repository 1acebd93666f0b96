"""Faults and restarts as a kit prints them in clear. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FATAL = re.compile(r">>> ZEPHYR FATAL ERROR (\d{1,9}): (.+)")
_FAULT = re.compile(r"\*{5} (.+?) \*{5}")
_ASSERT = re.compile(r"ASSERTION FAIL.*|\bassert(?:ion)? failed\b.*", re.IGNORECASE)
_ADDRESS = re.compile(r"Faulting instruction address \([^)]*\): (0x[0-9a-fA-F]{1,16})")
_THREAD = re.compile(r"Current thread: (0x[0-9a-fA-F]{1,16}) \(([^)]*)\)")
_BANNER = re.compile(r"\*\*\* (?:Booting |Using )?(.+?) \*\*\*")


@dataclass(frozen=True, slots=True)
class FaultText:
    """A line of a crash report. What it does not say is None."""

    line: str
    what: str
    reason: int | None = None
    """The number behind ZEPHYR FATAL ERROR."""
    address: int | None = None
    """The instruction at fault."""
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Reboot:
    """The banner of a start: of the bootloader, the SDK or the kernel."""

    line: str
    banner: str


def read_fault(line: str) -> FaultText | Reboot | None:
    """Return what `line` says about a crash or a restart, None for an ordinary line."""
    if "***" in line:
        if match := _FAULT.search(line):
            return FaultText(line, match[1].lower())
        if (match := _BANNER.search(line)) and "***" in line[:3]:
            return Reboot(line, match[1])
    if match := _FATAL.search(line):
        return FaultText(line, match[2], reason=int(match[1]))
    if match := _ADDRESS.search(line):
        return FaultText(line, "faulting instruction", address=int(match[1], 16))
    if match := _THREAD.search(line):
        return FaultText(line, "current thread", thread=match[2])
    if match := _ASSERT.search(line):
        return FaultText(line, match[0])
    return None
