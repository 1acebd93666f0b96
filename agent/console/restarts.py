"""Which of the lines that tell of a restart tell of a new one. Pure.

A kit says several times that it starts: its bootloader, its kernel, its AT host, on one port or on
two. The order on two ports is not that of the kit.
"""

from __future__ import annotations

BOOT_S = 10.0
"""From the first line of a start to its last: Serial Modem is ready after about 2 s."""

_FAULT, _INIT, _READY = "#XMODEM: FAULT", "#XMODEM: INIT", "ready"


class Restarts:
    """Counts restarts. It is told every line that says so, with a time in seconds."""

    def __init__(self) -> None:
        self.count = 0
        self._began = float("-inf")
        self._heard: set[str] = set()

    def begins(self, line: str, now_s: float) -> bool:
        """Tell whether `line`, heard at `now_s`, is the first of another restart."""
        said = _what(line)
        new = now_s - self._began >= BOOT_S or self._contradicts(said)
        if said == _INIT and _FAULT in self._heard:
            self._heard.remove(_FAULT)  # what it began is over, however long that took
            new = False
        if new:
            self.count += 1
            self._began = now_s
            self._heard.clear()
        self._heard.add(said)
        return new

    def _contradicts(self, said: str) -> bool:
        """Tell whether a kit that starts once cannot say this after what it said."""
        if said == _FAULT:
            return True
        # A boot may show one banner twice, for two of its stages, but not once it is done.
        return said in self._heard and (said == _READY or _READY in self._heard)


def _what(line: str) -> str:
    if line.startswith("***"):
        return line
    for known in (_FAULT, _INIT):
        if line.startswith(known):
            return known
    return _READY
