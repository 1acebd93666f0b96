"""Hides a secret that stands below the line that names it. Pure.

A shell prints what it stored with no name beside it, and firmware dumps a key in hex below a title.
"""

import re

from at.protocol.dialect import PROMPTS
from at.transcripts.redaction.keys_by_line import KEY_LEFT

_ENDS = "\r\n\0 "
LOG = re.compile(r"\[\d\d:\d\d:\d\d|\*\*\* ", re.ASCII)
"""How a line of a kit's own log begins."""
_SETTING = re.compile(
    r"(?ai)\bsettings (?:get|read(?: \w+)?) +[\w/.-]*(?:psk|pass\w*|pwd|auth|key|secret|token)"
    r"(?: --json)?$|\blwm2m read +(?:-\w+ +)?/?0/\d+/[35](?: +-\w+)?$"
)
"""What is answered with one value: a setting, or a key of LwM2M's security object."""
_CREDENTIAL = re.compile(
    r"(?ai)\bcred (?:get +\S+ +(?:psk(?:_id)?|pre_shared_key(?:_id)?|pk|priv_key)\b.*|buf +load)$"
)
_SIGNS = (b"key", b"psk", b"secret", b"pass", b"settings ", b"cred ", b"lwm2m read ")
"""A line without any of these, in small letters, names nothing: most lines."""
_TITLE_LENGTH = 60
_TITLE = re.compile(
    r"(?ai)(?:^|[^a-z])(?!pub)(?:[a-z]+_)?(?<!public[ _-])(?<!pub[ _-])"
    r"(?:psk|secret|password|passphrase|[a-z]{0,8}key)(?: value[\w ]{0,16})?"
    r"['\"]?(?: ?[(\[]\d+(?: bytes)?[)\]])?[\s:=]*$"
)
"""How a line ends that is the title of a dump of a key."""
_ROW = re.compile(
    r"(?ai)(?:(?:\[[^\]]{0,40}\]|<\w{1,5}>|\d[\d:.,TZ+-]{7,40}|[^\s:]{1,40}(?::\d{1,5})?:)\s+){0,6}"
    r"(?:[0-9a-f]{4,8}:? +)?"
    r"(?P<dump>[0-9a-f]{2}(?: {1,3}[0-9a-f]{2}){0,31}(?:\s*$|(?: {2,}|\s*\|)[^\r\n]*)"
    r"|[0-9a-f]{16,}$)"
)
"""A row of a dump, perhaps behind a log's prefix and an offset."""
_BYTES = re.compile(
    r"(?ai)(?<![\w.])(?P<dump>(?:[0-9a-f]{2}(?: {1,3}[0-9a-f]{2}|[:-][0-9a-f]{2}){7,}"
    r"|0x[0-9a-f]{2}(?:[, ]{1,2}0x[0-9a-f]{2}){7,})(?!\w)[^\r\n]*)"
)
"""So many bytes are a row wherever they stand in a line."""


class NamedAbove:
    """Follows the lines of a session and hides what one above them names as secret."""

    def __init__(self) -> None:
        self._below = ""
        """What is to come: a `value`, the `words` of a credential, `rows` of a dump, or nothing."""

    def clean(self, line: bytes, *, sent: bool = False) -> bytes:
        """Return a line without the secret that it is by the lines above it."""
        may_name = any(map(line.lower().__contains__, _SIGNS))
        text = line.decode("latin-1").strip(_ENDS) if may_name or self._below else ""
        if not text:
            return line
        below, self._below = self._below, ""
        hidden, left = "", KEY_LEFT.match(text.encode("latin-1"))
        if may_name and (named := _named(text)):
            self._below = named
        elif (sent and below != "words") or PROMPTS.search(line) or left:
            pass
        elif below and LOG.match(text) and not (below == "rows" and _row(text)):
            self._below = "" if below == "rows" else below
        elif below == "words":
            self._below, hidden = below, "" if " " in text else text
        elif below:
            row = _row(text)
            self._below = "rows" if row is not None else ""
            hidden = row["dump"] if row is not None else text if below == "value" else ""
        if not hidden:
            return line
        shown = b"{redacted:password}" if below == "value" else b"{redacted:key}"
        before, _, behind = line.rpartition(hidden.encode("latin-1"))
        return before + shown + behind


def _named(text: str) -> str:
    """Return what a line says that is below it, "" if nothing secret is."""
    if _SETTING.search(text):
        return "value"
    if _CREDENTIAL.search(text):
        return "words"
    return "rows" if _TITLE.search(text, max(0, len(text) - _TITLE_LENGTH)) else ""


def _row(text: str) -> re.Match[str] | None:
    return _BYTES.search(text) or _ROW.fullmatch(text)
