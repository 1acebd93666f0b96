"""The SIM: +CPIN +CPINR +CIMI %XICCID %XSIM +CRSM (TS 27.007; Nordic's AT reference)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from at.protocol.command import Command, Form, Parameters
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register
from at.protocol.values import Fields, Record, Value, after_name, bare_line, only_row, single_line

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


@dataclass(frozen=True, slots=True)
class PinState(Record):
    """Answer of +CPIN?: "READY", "SIM PIN", "SIM PUK" ..."""

    code: str


@dataclass(frozen=True, slots=True)
class PinRetries(Record):
    """One line of +CPINR."""

    code: str
    retries: int
    default_retries: int | None = None


@dataclass(frozen=True, slots=True)
class AllPinRetries(Record):
    """Answer of +CPINR."""

    codes: tuple[PinRetries, ...]


@dataclass(frozen=True, slots=True)
class Subscriber(Record):
    """Answer of +CIMI."""

    imsi: str


@dataclass(frozen=True, slots=True)
class CardNumber(Record):
    """Answer of %XICCID, without the padding F."""

    iccid: str


@dataclass(frozen=True, slots=True)
class SimState(Record):
    """%XSIM: 1 ready; 0 with the cause, whose words JSON has as `cause_text`."""

    state: int
    cause: int | None = None

    derived: ClassVar[tuple[str, ...]] = ("cause_text",)

    @property
    def cause_text(self) -> str | None:
        """The cause in words; None where there is none, or where it is not known."""
        return None if self.cause is None else _CAUSES.get(self.cause)


@dataclass(frozen=True, slots=True)
class SimNotice(Notice):
    """%XSIM as a notice."""

    value: SimState


@dataclass(frozen=True, slots=True)
class SimResponse(Record):
    """Answer of +CRSM: status words and the response, hex."""

    sw1: int
    sw2: int
    response: str | None = None


@dataclass(frozen=True, slots=True)
class ReadPinState(Command[PinState]):
    """AT+CPIN?: an error until the SIM is up."""

    name: ClassVar[str] = "+CPIN"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "+CPIN"

    def parse(self, lines: Sequence[str]) -> PinState:
        """Return which code the SIM waits for."""
        code = after_name(single_line(lines, self.name), self.name).strip('"')
        if not _CODE.fullmatch(code):
            raise ParseError(f"{self.name}: the answer is no code")
        return PinState(code)


@dataclass(frozen=True, slots=True)
class ReadPinRetries(Command[AllPinRetries]):
    """AT+CPINR=<code>."""

    code: str = "SIM PIN"

    name: ClassVar[str] = "+CPINR"
    form: ClassVar[Form] = Form.SET
    prefix: ClassVar[str] = "+CPINR"

    def parameters(self) -> Parameters:
        """Return the code."""
        return (self.code,)

    def parse(self, lines: Sequence[str]) -> AllPinRetries:
        """Return the tries that are left."""
        if not lines:
            raise ParseError(f"{self.name}: the line is missing")
        retries = []
        for line in lines:
            fields = Fields.of(line, self.name)
            retries.append(
                PinRetries(
                    fields.text("code"),
                    fields.integer("retries", 0, 255),
                    fields.optional_integer("default_retries", 0, 255),
                )
            )
            fields.end()
        return AllPinRetries(tuple(retries))

    @classmethod
    def captured(cls, arguments: Sequence[Value]) -> Self | None:
        """Return one for any code: the reply names its own."""
        del arguments
        return cls()


@dataclass(frozen=True, slots=True)
class ReadSubscriber(Command[Subscriber]):
    """AT+CIMI: an error when there is no SIM."""

    name: ClassVar[str] = "+CIMI"

    def parse(self, lines: Sequence[str]) -> Subscriber:
        """Return the IMSI."""
        imsi = bare_line(lines, self.name)
        if not re.fullmatch(r"[0-9]{6,15}", imsi, re.ASCII):
            raise ParseError(f"{self.name}: the answer is no IMSI")
        return Subscriber(imsi)


@dataclass(frozen=True, slots=True)
class ReadCardNumber(Command[CardNumber]):
    """AT%XICCID."""

    name: ClassVar[str] = "%XICCID"
    prefix: ClassVar[str] = "%XICCID"

    def parse(self, lines: Sequence[str]) -> CardNumber:
        """Return the ICCID."""
        fields = only_row(lines, self.name)
        digits = fields.text("iccid")
        fields.end()
        if not re.fullmatch(r"[0-9]{18,20}[Ff]?", digits, re.ASCII):
            raise fields.fail("iccid", "is not 18 to 20 digits")
        return CardNumber(digits.rstrip("Ff"))


@dataclass(frozen=True, slots=True)
class ReadSimState(Command[SimState]):
    """AT%XSIM?."""

    name: ClassVar[str] = "%XSIM"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "%XSIM"

    def parse(self, lines: Sequence[str]) -> SimState:
        """Return the state."""
        return _state(only_row(lines, self.name))


@dataclass(frozen=True, slots=True)
class AccessSim(Command[SimResponse]):
    """AT+CRSM=<command>,<file>,<p1>,<p2>,<p3>[,<data>]."""

    command: int = 176
    file: int = 0
    p1: int = 0
    p2: int = 0
    p3: int = 0

    name: ClassVar[str] = "+CRSM"
    form: ClassVar[Form] = Form.SET
    prefix: ClassVar[str] = "+CRSM"

    def parameters(self) -> Parameters:
        """Return command, file and the three bytes."""
        return self.command, self.file, self.p1, self.p2, self.p3

    def parse(self, lines: Sequence[str]) -> SimResponse:
        """Return status words and response."""
        fields = only_row(lines, self.name)
        answer = SimResponse(
            fields.integer("sw1", 0, 255),
            fields.integer("sw2", 0, 255),
            fields.optional_hexadecimal("response"),
        )
        fields.end()
        if answer.response is not None and len(answer.response) % 2:
            raise fields.fail("response", "has half a byte")
        return answer

    @classmethod
    def captured(cls, arguments: Sequence[Value]) -> Self | None:
        """Return one for any access: the reply has one shape."""
        del arguments
        return cls()


def _state(fields: Fields) -> SimState:
    answer = SimState(fields.integer("state", 0, 1), fields.further_integer("cause", 0, 255))
    fields.end()
    return answer


def _notice(line: str, _context: str | None) -> SimNotice:
    return SimNotice("%XSIM", line, _state(Fields.of(line, "%XSIM")))


register("%XSIM", _notice)
