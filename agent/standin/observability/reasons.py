"""Why a device restarted, by number: the reboot reasons of the device SDK."""

from __future__ import annotations

_REASONS = {
    0x0000: "Unknown",
    0x0001: "User Shutdown",
    0x0002: "User Reset",
    0x0003: "Firmware Update",
    0x0004: "Low Power",
    0x0005: "Debugger Halted",
    0x0006: "Button Reset",
    0x0007: "Power On Reset",
    0x0008: "Software Reset",
    0x0009: "Deep Sleep",
    0x000A: "Pin Reset",
    0x000B: "Self Test",
    0x8000: "Unknown Error",
    0x8001: "Assert",
    0x8002: "Watchdog",
    0x8003: "Brown Out",
    0x8004: "Non-Maskable Interrupt",
    0x8005: "Hardware Watchdog",
    0x8006: "Software Watchdog",
    0x8007: "Clock Failure",
    0x8008: "Kernel Panic",
    0x8009: "Firmware Update Error",
    0x800A: "Out Of Memory",
    0x800B: "Stack Overflow",
    0x800C: "Task Watchdog",
    0x9100: "Bus Fault",
    0x9200: "Memory Fault",
    0x9300: "Usage Fault",
    0x9400: "Hard Fault",
    0x9401: "Lockup",
    0x9402: "Security Violation",
    0x9403: "Parity Error",
    0x9404: "Temperature Error",
    0x9405: "Hardware Error",
}


def reason_name(code: object) -> str:
    """Return the name of a reason; that of its class where the finer one is not known.

    A device may have reasons of its own, which come as their names.
    """
    if isinstance(code, str) and code:
        return code[:200]
    if not isinstance(code, int):
        return "Unknown"
    return _REASONS.get(code) or _REASONS.get(code & 0xFF00) or f"Reason 0x{code:04x}"
