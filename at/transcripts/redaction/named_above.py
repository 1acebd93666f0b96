"""Hides a secret that stands below the line that names it. Pure.

A shell prints what it stored with no name beside it.
"""

import re

from at.protocol.dialect import PROMPTS

_ENDS = "\r\n\0 "
_LOG = re.compile(r"\[\d\d:\d\d:\d\d|\*\*\* ", re.ASCII)
_SETTING = re.compile(
    r"(?ai)\bsettings (?:get|read(?: \w+)?) +[\w/.-]*(?:psk|pass\w*|pwd|key|secret|token)"
    r"(?: --json)?$"
)


class NamedAbove:
    """Follows the lines of a session and hides what one above them names as secret."""

    def __init__(self) -> None:
        self._asked = False

    def clean(self, line: bytes, *, sent: bool = False) -> bytes:
        """Return a line without the secret that it is by the lines above it."""
        text = line.decode("latin-1").strip(_ENDS)
        asks = _SETTING.search(text) is not None
        if asks or sent or PROMPTS.search(line):
            self._asked = asks
        elif self._asked and text and _LOG.match(text) is None:
            self._asked = False
            return line.replace(text.encode("latin-1"), b"{redacted:password}", 1)
        return line
