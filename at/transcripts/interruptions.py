"""Log lines that cut a line of the modem in two: "3526[00:00:01.000,000] <inf> app: up". Pure.

The rest of the modem's line stands on the next one, as the driver's framing has it.
"""

import re

from at.protocol import kit_log
from at.protocol.dialect import PROMPTS

_LOG = re.compile(rb"(?:\x1b\[[0-9;]{0,12}m){0,4}" + kit_log.BEGIN.encode() + rb"[^\r\n]*\r*\n?")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")


def is_cut(line: bytes) -> bool:
    """Return whether a log line stands in a line, behind its beginning."""
    match = _LOG.search(line)
    return match is not None and not _is_prompt(line[: match.start()])


def without_logs(text: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return a text without the log lines that cut it, and these with their places in the rest."""
    rest, logs, done = b"", [], 0
    for match in _LOG.finditer(text):
        begin = max(text.rfind(b"\n", 0, match.start()) + 1, done)
        if not _is_prompt(text[begin : match.start()]):
            rest += text[done : match.start()]
            logs.append((len(rest), match.group()))
            done = match.end()
    return rest + text[done:], logs


def _is_prompt(head: bytes) -> bool:
    return not PROMPTS.sub(b"", _COLOUR.sub(b"", head)).strip()
