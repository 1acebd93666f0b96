"""Counts the restarts of a kit from the lines that announce one. Pure.

A kit announces one start several times: its bootloader, its kernel, its AT host, on one port or
on two. The order of lines from two ports is not that of the kit.
"""

from __future__ import annotations

BOOT_S = 10.0
"""Seconds from the first line of a start to its last: Serial Modem needs about 2 s."""

_MODEM_FAULT, _MODEM_INIT, _MODEM_READY = "#XMODEM: FAULT", "#XMODEM: INIT", "ready"


class RestartCounter:
    """Counts restarts from the lines that announce one, with their times in seconds."""

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
