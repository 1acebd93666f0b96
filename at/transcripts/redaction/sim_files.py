"""Files of a SIM as +CRSM prints them: which of them name somebody, and their digits.

Identifiers and codings are those of 3GPP TS 31.102 and ETSI TS 102 221.
"""

import re
from collections.abc import Callable

_ICCID, _IMSI = 0x2FE2, 0x6F07
# Own number, last places with temporary identities, keys: filled as an empty file is.
_EMPTIED = {0x6F40, 0x6F7E, 0x6F73, 0x6FE3, 0x6FE4, 0x6F08, 0x6F09}
_ICCID_SHAPE = re.compile(r"98(?:[0-9]{2}){8}(?:[0-9]{2}|F[0-9])", re.ASCII | re.IGNORECASE)
_IMSI_SHAPE = re.compile(r"0[4-8][0-9][19](?:[0-9F]{2})+", re.ASCII | re.IGNORECASE)


def other_content(
    content: str, arguments: str, iccid: Callable[[str], str], imsi: Callable[[str], str]
) -> str:
    """Return the hex text of a file with another card or subscriber.

    `arguments` are those of the +CRSM that read it, "" where it is not known what was read: then a
    content that looks like a card's number or a subscriber's is one.
    """
    file = _file(arguments)
    if file in _EMPTIED:
        return "F" * len(content)
    if file == _ICCID or (file is None and len(content) == 20):
        if _ICCID_SHAPE.fullmatch(content):
            return _swapped(_other(_swapped(content), 0, iccid))
        return _nines(content) if file == _ICCID else content
    if file == _IMSI or (file is None and len(content) == 18):
        if _IMSI_SHAPE.fullmatch(content):
            # A byte of length, then half a byte that says whether the number of digits is odd.
            return content[:2] + _swapped(_other(_swapped(content[2:]), 1, imsi))
        return _nines(content) if file == _IMSI else content
    return content


def _file(arguments: str) -> int | None:
    fields = arguments.split(",")
    text = fields[1].strip() if len(fields) > 1 else ""
    return int(text) if text.isascii() and text.isdecimal() else None


def _other(digits: str, start: int, change: Callable[[str], str]) -> str:
    """Return half bytes whose digits from `start` on are changed; the padding stays."""
    number = digits[start:].rstrip("Ff")
    return digits[:start] + change(number) + digits[start + len(number) :]


def _nines(content: str) -> str:
    """Return a part of a number, which cannot be told from the whole, without its digits."""
    return re.sub("[0-9A-Fa-f]", "9", content)


def _swapped(content: str) -> str:
    return "".join(content[at + 1] + content[at] for at in range(0, len(content) - 1, 2))
