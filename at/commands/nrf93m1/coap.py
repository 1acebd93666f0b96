"""The notice %COAP of the nRF93M1: the steps of its client towards the cloud, one a line.

They come before the result of a command or after it. A word that is not known here is carried, but
one that is a known word with a byte turned, lost or doubled is refused.
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import ip_address
from itertools import takewhile
from json import loads

from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register
from at.protocol.redaction.command_redaction import MARKER
from at.protocol.values import Record, after_name

_ADDRESS = r"(?P<address>[0-9A-Fa-f.:]{2,45})"
_OTHER = re.compile(r"(?P<step>[A-Z][A-Z0-9_]{1,39})(?:,(?P<parameters>.*))?", re.ASCII | re.DOTALL)
# The steps that are known, whole: what begins like one and goes on otherwise is damaged.
_STEPS = (
    r"(?P<step>CONNECTING)(?: ?\.\.\.)?",
    r"(?P<step>CONNECTED|RECONNECTING|SENDING_AUTH|TIMESYNC_PARSE_FAIL)",
    r"(?P<step>RESOLVING) (?P<host>[\w.-]{1,253})(?: \((?P<family>\w{1,20})\))?(?: ?\.{3})?",
    rf"(?P<step>IPv4|IPv6): {_ADDRESS}, PORT: (?P<port>[0-9]{{1,5}})",
    r"(?P<step>DTLS_STATE),(?P<state>[0-9]{1,3})",
    r"(?P<step>RESPONSE),(?P<code>[245]\.(?:[0-2][0-9]|3[01]))",
    r"(?P<step>DATA),HEX,(?P<hex>(?:[0-9A-Fa-f]{2})+)",
    r"(?P<step>DATA),(?P<length>[0-9]{1,6}),(?P<text>.*)",
    rf"(?P<step>SYNCING_TIME) to {_ADDRESS}",
    r"(?P<step>TIMESYNC_HDR),(?P<header>.+)",
    r"(?P<step>TIMESYNC_PARSED),(?P<time>[0-9]{1,12})",
    r"(?P<step>ERROR),(?P<error>[A-Z][A-Z0-9_]+)",
)
_KNOWN = frozenset("|".join(re.findall(r"<step>([^)]+)", " ".join(_STEPS))).split("|"))
_ERRORS = (
    *("NO_BEARER", "TIME_SYNC_FAILED", "CTX_ALLOC", "DNS_FAILED", "SESSION_ALLOC", "DTLS_TIMEOUT"),
    "SESSION_NOT_ESTABLISHED",
)


class CoapStep(Record, frozen=True):
    """A line of %COAP: its word, and what the word has; the rest is None.

    `code` is CoAP's ("2.05"). A body is `text` of `length` bytes, or `hex`; `parameters` is the
    rest of a line whose word is not known.
    """

    step: str
    state: int | None = None
    code: str | None = None
    length: int | None = None
    text: str | None = None
    hex: str | None = None
    host: str | None = None
    family: str | None = None
    address: str | None = None
    port: int | None = None
    header: str | None = None
    time: int | None = None
    error: str | None = None
    parameters: str | None = None


class CoapNotice(Notice, frozen=True):
    """%COAP."""

    value: CoapStep


def read_step(line: str) -> CoapStep:
    """Return the step of a %COAP line. Raises ParseError for one that is damaged."""
    text = after_name(line, "%COAP")
    for pattern in _STEPS:
        if match := re.fullmatch(pattern, text, re.ASCII | re.DOTALL):
            return _step({name: part for name, part in match.groupdict().items() if part})
    other = _OTHER.fullmatch(text)
    if other is None or is_damaged(other["step"], _KNOWN):
        raise ParseError("%COAP: the line is no step of the client")
    return CoapStep(other["step"], parameters=other["parameters"])


def is_damaged(word: str, known: Iterable[str]) -> bool:
    """Return whether a word is a known one, cut or with one byte turned, lost or doubled."""
    return any(each.startswith(word) or _differ_in_one(word, each) for each in known)


def is_word(text: str, known: Collection[str]) -> bool:
    """Return whether it is a known word, or one that is not a known one damaged."""
    return text in known or not is_damaged(text, known)


def _differ_in_one(one: str, other: str) -> bool:
    pairs = zip(one, other, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    tail, end = one[same:], other[same:]
    return tail[1:] == end[1:] or tail[1:] == end or tail == end[1:]


def _step(parts: dict[str, str]) -> CoapStep:
    numbers = {name: int(parts.pop(name)) for name in _NUMBERS if name in parts}
    if numbers.get("port", 0) > 0xFFFF or not _is_address(parts.get("address", "::")):
        raise ParseError("%COAP: the address is none")
    if not is_word(parts.get("error", "ERROR"), _ERRORS):
        raise ParseError("%COAP: the error is damaged")
    if not _is_whole(parts):
        raise ParseError("%COAP: the body breaks off, or is damaged")
    if (length := numbers.get("length")) is not None:
        text = parts.setdefault("text", "")
        # A text that lost its secrets, or has bytes that are no text, has another length here.
        whole = length == len(text.encode()) or MARKER.search(text) or "\\x" in text
        if not whole:
            raise ParseError(f"%COAP: the body has not the {length} bytes that are announced")
    return CoapStep(**parts, **numbers)  # type: ignore[arg-type]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_whole(parts: dict[str, str]) -> bool:
    """Return whether a body has its end: JSON, or a CBOR map that a byte of its own closes."""
    if parts.get("text", "").startswith("{"):
        try:
            loads(parts["text"])
        except (ValueError, RecursionError):
            return False
    body = parts.get("hex", "").lower()
    return not body.startswith("bf") or body.endswith("ff")


_NUMBERS = ("state", "length", "port", "time")


register("%COAP", lambda line, _: CoapNotice("%COAP", line, read_step(line)))
