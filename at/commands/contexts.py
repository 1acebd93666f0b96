"""Packet data: +CGDCONT +CGPADDR +CGACT +CGAUTH +CGCONTRDP +CGEREP; +CGEV (TS 27.007, 10)."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register
from at.protocol.record_fields import optional, record, within
from at.protocol.values import Fields, Record, after_name, read_rows

_CID_HIGH = 255
# Events of TS 27.007, 10.1.19, and of the modem: which parameter is the context, how few, how many.
_EVENTS: Mapping[str, tuple[int | None, int, int]] = {
    **dict.fromkeys(("NW DETACH", "ME DETACH"), (None, 0, 1)),
    **dict.fromkeys(("NW CLASS", "ME CLASS"), (None, 1, 1)),
    **dict.fromkeys(("NW PDN ACT", "ME PDN ACT", "NW PDN DEACT", "ME PDN DEACT"), (0, 1, 4)),
    **dict.fromkeys(("NW ACT", "ME ACT", "NW DEACT", "ME DEACT"), (1, 3, 4)),
    **dict.fromkeys(("NW MODIFY", "ME MODIFY"), (0, 3, 4)),
    **dict.fromkeys(("IPV6", "IPV6 FAIL", "ME PDN SUSPENDED", "ME PDN RESUMED"), (0, 1, 1)),
    **dict.fromkeys(("ME BATTERY LOW", "ME OVERHEATED"), (None, 0, 0)),
    "NW REACT": (2, 2, 3),
    "REJECT": (None, 2, 2),
    "EXCE STATUS": (None, 1, 1),
    "RESTR": (None, 1, 2),
    "APNRATECTRL STAT": (0, 2, 3),
}
_BEFORE_LTE = ("NW DEACT", "ME DEACT", "NW REACT")  # "<PDP_type>","<PDP_addr>"[,<cid>]
_CID = re.compile(r"[0-9]{1,3}", re.ASCII)
_EVENT = re.compile(r"[A-Z][A-Z0-9]*(?: [A-Z][A-Z0-9]*)*", re.ASCII)
_EVENT_PARAMETER = re.compile(r'[0-9A-Za-z.:-]+|"[0-9A-Za-z.:-]*"', re.ASCII)


class ContextDefinition(Record, frozen=True):
    """One line of +CGDCONT?; the parameters after `ipv4_alloc` are vendor-specific and ignored."""

    cid: int
    type: str | None = None
    apn: str | None = None
    address: str | None = None
    ipv4_alloc: int | None = None


class ContextDefinitions(Record, frozen=True):
    """Answer of +CGDCONT?."""

    contexts: tuple[ContextDefinition, ...]


class ContextAddress(Record, frozen=True):
    """One line of +CGPADDR."""

    cid: int
    ipv4: str | None = None
    ipv6: str | None = None


class ContextAddresses(Record, frozen=True):
    """Answer of +CGPADDR."""

    contexts: tuple[ContextAddress, ...]


class ContextLogin(Record, frozen=True):
    """One line of +CGAUTH?: protocol 0 none, 1 PAP, 2 CHAP, 3 either."""

    cid: int
    protocol: int
    user: str | None = None


class ContextLogins(Record, frozen=True):
    """Answer of +CGAUTH?."""

    contexts: tuple[ContextLogin, ...]


class ContextState(Record, frozen=True):
    """One line of +CGACT?: 0 inactive, 1 active."""

    cid: Annotated[int, within(0, _CID_HIGH)]
    state: Annotated[int, within(0, 1)]


class ContextStates(Record, frozen=True):
    """Answer of +CGACT?."""

    contexts: tuple[ContextState, ...]


class ContextParameters(Record, frozen=True):
    """One line of +CGCONTRDP, in the form before or since TS 27.007 9.4.0."""

    cid: int
    bearer_id: int | None = None
    apn: str | None = None
    local_address: str | None = None
    subnet_mask: str | None = None
    gateway: str | None = None
    dns_primary: str | None = None
    dns_secondary: str | None = None
    ipv4_mtu: int | None = None


class ContextsParameters(Record, frozen=True):
    """Answer of +CGCONTRDP."""

    contexts: tuple[ContextParameters, ...]


class EventReporting(Record, frozen=True):
    """Answer of +CGEREP?."""

    mode: Annotated[int, within(0, 2)]
    bfr: Annotated[int | None, optional(0, 1)] = None


class PacketEvent(Record, frozen=True):
    """+CGEV: the event's words and the numbers behind them: "ME PDN ACT", (0, 1)."""

    event: str
    cid: int | None = None
    parameters: tuple[str, ...] = ()


class PacketEventNotice(Notice, frozen=True):
    """+CGEV as a notice."""

    value: PacketEvent


@at_command("AT+CGDCONT=")
class DefineContext(OkCommand, frozen=True):
    """AT+CGDCONT=<cid>,<type>[,<apn>]."""

    cid: int
    type: str = "IPV4V6"
    apn: str | None = None


@at_command("AT+CGDCONT?")
class ReadContexts(Command[ContextDefinitions], frozen=True):
    """AT+CGDCONT?."""

    def parse(self, lines: Sequence[str]) -> ContextDefinitions:
        """Return the contexts; () if there are none."""
        return ContextDefinitions(read_rows(lines, self.name, _definition))


@at_command("AT+CGPADDR")
class ReadContextAddresses(Command[ContextAddresses], frozen=True):
    """AT+CGPADDR."""

    def parse(self, lines: Sequence[str]) -> ContextAddresses:
        """Return the addresses; a dual-stack pair in one text is split."""
        return ContextAddresses(read_rows(lines, self.name, _address))


@at_command("AT+CGPADDR=")
class ReadContextAddress(ReadContextAddresses, frozen=True):
    """AT+CGPADDR=<cid>."""

    cid: int = 0


@at_command("AT+CGAUTH?")
class ReadContextLogins(Command[ContextLogins], frozen=True):
    """AT+CGAUTH?."""

    def parse(self, lines: Sequence[str]) -> ContextLogins:
        """Return how each context is authenticated; a password in the answer is dropped."""
        return ContextLogins(read_rows(lines, self.name, _login))


@at_command("AT+CGACT?")
class ReadContextStates(Command[ContextStates], frozen=True):
    """AT+CGACT?."""

    def parse(self, lines: Sequence[str]) -> ContextStates:
        """Return which contexts are active."""
        return ContextStates(read_rows(lines, self.name, record(ContextState)))


@at_command("AT+CGCONTRDP")
class ReadContextParameters(Command[ContextsParameters], frozen=True):
    """AT+CGCONTRDP."""

    def parse(self, lines: Sequence[str]) -> ContextsParameters:
        """Return address, mask, gateway and name servers of the active contexts."""
        return ContextsParameters(read_rows(lines, self.name, _parameters))


@at_command("AT+CGCONTRDP=")
class ReadOneContextParameters(ReadContextParameters, frozen=True):
    """AT+CGCONTRDP=<cid>."""

    cid: int = 0


@at_command("AT+CGEREP?")
class ReadEventReporting(Command[EventReporting], frozen=True):
    """AT+CGEREP?."""


def _login(row: Fields) -> ContextLogin:
    cid, protocol = row.integer("cid", 0, _CID_HIGH), row.integer("protocol", 0, 3)
    login = ContextLogin(cid, protocol, row.optional_text("user"))
    row.optional_text("password")
    return login


def _definition(row: Fields) -> ContextDefinition:
    cid = row.integer("cid", 0, _CID_HIGH)
    if row.left < 2:
        raise row.fail("apn", "is missing")
    kind, apn, address = row.optional_quoted("type"), row.optional_quoted("apn"), None
    if row.peek().quoted or row.peek().absent:
        address = row.optional_quoted("address")
    alloc = row.optional_integer("ipv4_alloc", 0, 255)
    while row.left:
        row.next_value()
    return ContextDefinition(cid, kind, apn, address, alloc)


def _address(row: Fields) -> ContextAddress:
    cid = row.integer("cid", 0, _CID_HIGH)
    addresses = []
    for name in ("ipv4", "ipv6"):
        text = row.optional_text(name)
        addresses += text.split() if text else []
    if len(addresses) > 2:
        raise row.fail("ipv6", "is more than one address")
    for text in addresses:
        if not re.fullmatch(r"[0-9A-Fa-f:.]{2,64}", text, re.ASCII):
            raise row.fail("ipv4", "is not an address")
    ipv4 = next((text for text in addresses if _is_v4(text)), None)
    ipv6 = next((text for text in addresses if not _is_v4(text)), None)
    return ContextAddress(cid, ipv4, ipv6)


def _is_v4(text: str) -> bool:
    return ":" not in text and text.count(".") == 3


def _parameters(row: Fields) -> ContextParameters:
    cid = row.integer("cid", 0, _CID_HIGH)
    bearer, apn = row.optional_integer("bearer_id", 0, 255), row.text("apn")
    local, mask = _mask_apart(row, row.optional_text("local_address"))
    if mask is None and local is not None and (row.peek().text or "").startswith("255."):
        mask = row.text("subnet_mask")  # before 9.4.0 the mask was a parameter of its own
    gateway, first, second = (
        _address_text(row, row.optional_text(name))
        for name in ("gateway", "dns_primary", "dns_secondary")
    )
    mtu = _mtu(row)
    while row.left:
        row.next_value()
    return ContextParameters(cid, bearer, apn or None, local, mask, gateway, first, second, mtu)


def _mtu(row: Fields) -> int | None:
    """Return the MTU in bytes, behind two P-CSCF addresses and two flags; None if it is no size."""
    for _ in range(4):
        row.next_value()
    mtu = row.next_value()
    is_size = not mtu.quoted and re.fullmatch(r"[0-9]{1,5}", mtu.text or "", re.ASCII)
    return int(mtu.text or "") if is_size else None


def _mask_apart(row: Fields, text: str | None) -> tuple[str | None, str | None]:
    """Return address and mask of "10.0.0.1.255.255.255.0" (IPv4), or of 32 numbers (IPv6)."""
    if not (text := _address_text(row, text)):
        return None, None
    parts = text.split(".")
    if len(parts) in {8, 32} and ":" not in text:
        half = len(parts) // 2
        return ".".join(parts[:half]), ".".join(parts[half:])
    address, slash, prefix = text.partition("/")
    return address, prefix if slash else None


def _address_text(row: Fields, text: str | None) -> str | None:
    if text and not re.fullmatch(r"[0-9A-Fa-f:./]{2,160}", text, re.ASCII):
        raise row.fail("an address", "is none")
    return text or None


def _event(line: str, _context: str | None) -> PacketEventNotice:
    text = after_name(line, "+CGEV")
    named = [name for name in _EVENTS if f"{text} ".startswith(f"{name} ")]
    event = max(named, key=len) if named else _unnamed_event(text)
    rest = text[len(event) :].strip()
    parameters = tuple(part.strip() for part in rest.split(",")) if rest else ()
    if not all(map(_EVENT_PARAMETER.fullmatch, parameters)):
        raise ParseError("+CGEV: what follows the event is not a list")
    cid = _event_context(event, parameters)
    return PacketEventNotice("+CGEV", line, PacketEvent(event, cid, parameters))


def _unnamed_event(text: str) -> str:
    """Return the words of an event that no manual names yet: of no known one is it a part."""
    match = _EVENT.match(text)
    if match is None:
        raise ParseError("+CGEV: the event has no words")
    if any(match.group() in name for name in _EVENTS):
        raise ParseError(f"+CGEV: {match.group()} is a part of an event")  # the line was cut
    return match.group()


def _event_context(event: str, parameters: Sequence[str]) -> int | None:
    place, fewest, most = _EVENTS.get(event, (0, 0, len(parameters)))
    is_number = [_CID.fullmatch(part) is not None for part in parameters]
    if event in _BEFORE_LTE and not any(is_number[:2]):
        place, fewest, most = 2, 2, 3
        is_number[:2] = [True, True]
    if not fewest <= len(parameters) <= most:
        raise ParseError(f"+CGEV: {event} has {len(parameters)} parameters")  # the line was cut
    if place is None or place >= len(parameters):
        return None
    if event not in _EVENTS:
        return int(parameters[0]) if is_number[0] else None
    if not all(is_number):
        raise ParseError(f"+CGEV: what follows {event} is not numbers")
    cid = int(parameters[place])
    if cid > _CID_HIGH:
        raise ParseError(f"+CGEV: {cid} is no context")
    return cid


register("+CGEV", _event)
