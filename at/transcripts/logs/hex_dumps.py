"""Takes what was sent and received out of dumps in hex. Pure.

Zephyr's log and that of ESP-IDF have them where firmware dumps what goes over a port, as Serial
Modem and the drivers of modems do; on the host socat, pyserial's spy://, gnokii, Gammu and monitors
of serial ports write them.
"""

import re
from collections.abc import Iterable, Iterator

from at.protocol.kit_log import LEVEL

_LABEL = re.compile(
    rf"(?P<head>(?:.*{LEVEL}[\w.]+: (?:\w+: )?|<(?:info|debug)> \w+: |\[[0-9:./ ,T-]{{8,30}}\] "
    r"|.*\s(?=(?:SENDING|RECEIVED) FRAME))?)"
    r"(?:message )?"
    r"(?:(?P<out>TX|SENT|SEND(?:ING)?|WRITTEN)|RX|RECV|RECEIVED|READ)"
    r"(?: (?:DATA|FRAME(?:TYPE)?)\b[^\"+]{0,60}|: 0x[0-9a-f]+ / 0x[0-9a-f]+)?:?\s*",
    re.IGNORECASE,
)
"""The line above a dump, which says its direction as the firmware sees it."""
_LABELLED_ROW = re.compile(
    r"(?P<head>(?:.*\s)?[EWIDV] \(\d+\) )(?:(?P<out>uart-tx)|uart-rx): 0x[0-9a-f]+ {3}",
    re.IGNORECASE,
)
"""How esp_modem begins each row: with the direction, and no line above it."""
_ROWS_OF_THE_HOST = (
    re.compile(  # socat -x, perhaps with -v; its line above each transfer was set before the row
        r"(?P<head>\d{4}/\d\d/\d\d [\d:.]+ )(?:(?P<out>>)|<) "
        r"(?P<bytes>(?: [0-9a-f]{2})+)(?:  .*)?"
    ),
    re.compile(
        r"(?P<head>\d{6,}\.\d{3} )(?:(?P<out>TX)|RX) {3}[0-9A-F]{4}  "
        r"(?P<bytes>(?:[0-9A-F]{2} {1,2}){1,16}) .*"
    ),
    re.compile(
        r"(?P<head>(?:.*\s)?)\[?(?:(?P<out>TX|SENT|SEND|>>)|RX|RECV|RECEIVED|<<)\]?:?(?: - )?\s*"
        r"(?P<bytes>(?:[0-9A-F]{2} )+[0-9A-F]{2})\s*",
        re.IGNORECASE,
    ),
)
_ROW = re.compile(
    # Gammu's: each byte with its sign
    r"(?:.*\s)?(?P<signed>(?:[0-9A-F]{2}.\|){1,15}[0-9A-F]{2}.?) +.*"
    r"|(?:(?:.*[\s:])?\s{2})?(?P<bytes>(?:[0-9a-f]{2}(?: {1,2}|(?=\|))){1,16})(?: *\|| {2,}\S).*",
    re.IGNORECASE,
)
_MAY_BE_ROW = re.compile(r"[0-9A-F]{2}(?:.?\|| |$)", re.IGNORECASE)
"""What each row has, and few lines of a log have."""
_SIGNED_BYTE = re.compile(r"([0-9A-F]{2})(?:.\||.$|$)", re.IGNORECASE)


def without_dumps(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; for a dump, what it holds as one line with a mark.

    Its number is that of the line above the dump; LF stands in it where its lines end.
    """
    label: re.Match[str] | None = None
    begin = 0
    dumped = bytearray()
    for number, line in numbered:
        own = row = None
        if _MAY_BE_ROW.search(line):
            own = next(filter(None, (row.fullmatch(line) for row in _ROWS_OF_THE_HOST)), None)
            row = own or _ROW.fullmatch(line)
        own = own or (_LABELLED_ROW.match(line) if row else None)
        goes_on = own is None or (
            label and own["out"] == label["out"] and not dumped.endswith((b"\r", b"\n"))
        )
        if row and label and goes_on:
            dumped += _bytes_of(row)
            continue
        yield from _marked(label, begin, dumped)
        dumped.clear()
        label, begin = own or _LABEL.fullmatch(line), number
        if row and own:
            dumped += _bytes_of(row)
        if label is None:
            yield number, line
    yield from _marked(label, begin, dumped)


def _bytes_of(row: re.Match[str]) -> bytes:
    signed = row.groupdict().get("signed")
    return bytes.fromhex("".join(_SIGNED_BYTE.findall(signed)) if signed else row["bytes"])


def _marked(
    label: re.Match[str] | None, number: int, dumped: bytearray
) -> Iterator[tuple[int, str]]:
    if label is None:
        return
    text = dumped.decode("utf-8", "surrogateescape").replace("\r\n", "\n").strip("\r\n\0")
    if text:
        yield number, f"{label['head']}{'>' if label['out'] else '<'} {text}"
    elif not dumped:
        yield number, label[0]
