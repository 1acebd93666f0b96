"""The SIM: +CPIN +CPINR +CIMI %XICCID %XSIM +CRSM (TS 27.007; Nordic's AT reference)."""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import optional, record, within
from at.protocol.values import Fields, Record, bare_line, named_text, read_rows

_CODE = re.compile(r"READY|SIM P(?:IN|UK)2?|PH[-_][A-Z]+ P(?:IN|UK)|NOT (?:READY|INSERTED)")
_CAUSES = {
    1: "PIN required",
    2: "PIN2 required",
    3: "PUK required",
    4: "PUK2 required",
    5: "PUK blocked",
    6: "PUK2 blocked",
    7: "device personalisation blocked",
    8: "IMEI lock blocked",
    9: "SIM failure, or no SIM",
    10: "SIM changed",
    11: "SIM profile changed",
}


def card_number(fields: Fields, name: str) -> str:
    """Return an ICCID: 18 to 20 digits; some SIMs end in F. Raises ParseError."""
    digits = fields.text(name)
    if not re.fullmatch(r"[0-9]{18,20}[Ff]?", digits, re.ASCII):
        raise fields.fail(name, "is not 18 to 20 digits")
    return digits


class PinState(Record, frozen=True):
    """Answer of +CPIN?: "READY", "SIM PIN", "SIM PUK" ..."""

    code: str


class PinRetries(Record, frozen=True):
    """One line of +CPINR."""

    code: Annotated[str, Fields.text]
    retries: Annotated[int, within(0, 255)]
    default_retries: Annotated[int | None, optional(0, 255)] = None


class AllPinRetries(Record, frozen=True):
    """Answer of +CPINR."""

    codes: tuple[PinRetries, ...]


class Subscriber(Record, frozen=True):
    """Answer of +CIMI."""

    imsi: str


def _iccid(fields: Fields, name: str) -> str:
    return card_number(fields, name).rstrip("Ff")


class CardNumber(Record, frozen=True):
    """Answer of %XICCID, without the padding F."""

    iccid: Annotated[str, _iccid]


class SimState(Record, frozen=True):
    """%XSIM: 1 ready; 0 with the cause, whose words JSON has as `cause_text`."""

    state: int
    cause: int | None = None

    derived: ClassVar[tuple[str, ...]] = ("cause_text",)

    @property
    def cause_text(self) -> str | None:
        """The cause in words; None where there is none, or where it is not known."""
        return None if self.cause is None else _CAUSES.get(self.cause)


class SimNotice(Notice, frozen=True):
    """%XSIM as a notice."""

    value: SimState


def _octets(fields: Fields, name: str) -> str | None:
    text = fields.optional_hexadecimal(name)
    if text is not None and len(text) % 2:
        raise fields.fail(name, "has half a byte")
    return text


class SimResponse(Record, frozen=True):
    """Answer of +CRSM: status words and the response, hex."""

    sw1: Annotated[int, within(0, 255)]
    sw2: Annotated[int, within(0, 255)]
    response: Annotated[str | None, _octets] = None


@at_command("AT+CPIN?")
class ReadPinState(Command[PinState], frozen=True):
    """AT+CPIN?: an error until the SIM is up."""

    def parse(self, lines: Sequence[str]) -> PinState:
        """Return which code the SIM waits for."""
        code = named_text(lines, self.name).strip('"')
        if not _CODE.fullmatch(code):
            raise ParseError(f"{self.name}: the answer is no code")
        return PinState(code)


@at_command("AT+CPINR=")
class ReadPinRetries(Command[AllPinRetries], frozen=True):
    """AT+CPINR=<code>."""

    code: str = "SIM PIN"

    def parse(self, lines: Sequence[str]) -> AllPinRetries:
        """Return the tries that are left."""
        if not lines:
            raise ParseError(f"{self.name}: the line is missing")
        return AllPinRetries(read_rows(lines, self.name, record(PinRetries)))


@at_command("AT+CIMI", prefix="")
class ReadSubscriber(Command[Subscriber], frozen=True):
    """AT+CIMI: an error when there is no SIM."""

    def parse(self, lines: Sequence[str]) -> Subscriber:
        """Return the IMSI."""
        imsi = bare_line(lines, self.name)
        if not re.fullmatch(r"[0-9]{6,15}", imsi, re.ASCII):
            raise ParseError(f"{self.name}: the answer is no IMSI")
        return Subscriber(imsi)


@at_command("AT%XICCID")
class ReadCardNumber(Command[CardNumber], frozen=True):
    """AT%XICCID."""


@at_command("AT%XSIM?")
class ReadSimState(Command[SimState], frozen=True):
    """AT%XSIM?."""

    def read(self, fields: Fields) -> SimState:
        """Return the state."""
        return _state(fields)


@at_command("AT+CRSM=")
class AccessSim(Command[SimResponse], frozen=True):
    """AT+CRSM=<command>,<file>,<p1>,<p2>,<p3>[,<data>]."""

    command: int = 176
    file: int = 0
    p1: int = 0
    p2: int = 0
    p3: int = 0


def _state(fields: Fields) -> SimState:
    state = fields.integer("state", 0, 1)
    return SimState(state, None if state else fields.further_integer("cause", 0, 255))


register_readers(SimNotice, {"%XSIM": _state})
