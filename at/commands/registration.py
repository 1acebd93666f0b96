"""Registration in every vendor's form: +CREG +CGREG +CEREG +C5GREG (TS 27.007, 7.2 and 10.1).

A read reply has <n> in front of what a notice has. Vendors write hex with and without quotes, put a
routing area in the middle, repeat fields, pad with blanks or zeros: `read_line` decides by what
each field holds.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeVar, cast

from at.commands.power_saving import HasGrantedTimers
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.errors import ParseError
from at.protocol.line.answer_or_notice import REGISTRATION_STATES, is_registration_reply
from at.protocol.notices import Notice, register
from at.protocol.values import Fields, Record, Value, hex_digits, name_before_colon, single_line

_ON_A_NETWORK = frozenset({1, 5, 6, 7, 9, 10})
REGISTERED = frozenset({1, 5})
"""The states of an LTE modem on a network, at home and roaming; other technologies have more."""
HIGHEST_CELL_ID = 0x0FFFFFFF
"""A cell id above it means that there is no cell."""


class NetworkRegistration(Record, frozen=True):
    """The fields of all four commands. `n` is set in a read reply, None in a notice."""

    n: int | None
    stat: int

    @property
    def registered(self) -> bool:
        """Whether the modem is on a network, at home or roaming."""
        return self.stat in _ON_A_NETWORK


class CircuitRegistration(NetworkRegistration, frozen=True):
    """+CREG."""

    lac: str | None = None
    ci: str | None = None
    act: int | None = None
    cause_type: int | None = None
    reject_cause: int | None = None


class PacketRegistration(NetworkRegistration, frozen=True):
    """+CGREG."""

    lac: str | None = None
    ci: str | None = None
    act: int | None = None
    rac: str | None = None
    cause_type: int | None = None
    reject_cause: int | None = None


class EpsRegistration(HasGrantedTimers, NetworkRegistration, frozen=True):
    """+CEREG: hex stays text; the timers are bits, and their seconds are properties."""

    tac: str | None = None
    ci: str | None = None
    act: int | None = None
    rac: str | None = None
    cause_type: int | None = None
    reject_cause: int | None = None
    active_time: str | None = None
    periodic_tau_ext: str | None = None

    derived: ClassVar[tuple[str, ...]] = ("active_time_s", "periodic_tau_ext_s")

    @property
    def registered(self) -> bool:
        """Whether the modem is on a network; not if the cell id means that there is none."""
        return self.stat in _ON_A_NETWORK and (
            self.ci is None or int(self.ci, 16) <= HIGHEST_CELL_ID
        )


class FiveGRegistration(NetworkRegistration, frozen=True):
    """+C5GREG."""

    tac: str | None = None
    ci: str | None = None
    act: int | None = None
    allowed_nssai_length: int | None = None
    allowed_nssai: str | None = None
    cause_type: int | None = None
    reject_cause: int | None = None


R = TypeVar("R", bound=NetworkRegistration)


def read_line(line: str, name: str) -> NetworkRegistration:
    """Return the registration of a reply or notice of any of the four names. Raises ParseError."""
    fields = Fields.of(line, name)
    n = fields.integer("n", 0, 5) if is_registration_reply(line) else None
    registration = _TAILS[name](fields, n, registration_state(fields, "stat"))
    fields.end()
    return registration


def registration_state(fields: Fields, name: str) -> int:
    """Return a registration state. Raises ParseError."""
    state = fields.integer(name)
    if state not in REGISTRATION_STATES:
        raise fields.fail(name, f"is {state}, which is no registration state")
    return state


class _RegistrationCommand(Command[R], frozen=True):
    """The read form of each of the four."""

    def parse(self, lines: Sequence[str]) -> R:
        """Return the registration of a reply: one without <n> is a notice, or was damaged."""
        registration = read_line(single_line(lines, self.name), self.name)
        if registration.n is None:
            raise ParseError(f"{self.name}: the reply has no <n>")
        return cast("R", registration)


@at_command("AT+CREG?")
class ReadCircuitRegistration(_RegistrationCommand[CircuitRegistration], frozen=True):
    """AT+CREG?."""


@at_command("AT+CGREG?")
class ReadPacketRegistration(_RegistrationCommand[PacketRegistration], frozen=True):
    """AT+CGREG?."""


@at_command("AT+CEREG?")
class ReadRegistration(_RegistrationCommand[EpsRegistration], frozen=True):
    """AT+CEREG?: the registration of an nRF91."""


@at_command("AT+C5GREG?")
class ReadFiveGRegistration(_RegistrationCommand[FiveGRegistration], frozen=True):
    """AT+C5GREG?."""


@at_command("AT+CEREG=")
class SetRegistrationNotices(OkCommand, frozen=True):
    """AT+CEREG=<n>: 0 off, 5 with the most fields."""

    n: int = 5


def _is_act(value: Value) -> bool:
    """Return whether a value may be an access technology: a small bare number, or absent."""
    return value.absent or (
        value.text is not None
        and not value.quoted
        and value.text.isdecimal()
        and len(value.text) <= 2
    )


def _is_rac(value: Value, following: Value) -> bool:
    """Return whether a value is a routing area, not a cause type: quoted, or "0" and a digit.

    An absent one is followed by the cause type (Quectel, before a registration).
    """
    if value.absent:
        return not following.absent and not following.quoted
    return value.quoted or (
        value.text is not None and len(value.text) == 2 and value.text[0] == "0"
    )


def _area(fields: Fields, name: str, digits: int = 4) -> str | None:
    text = fields.optional_text(name)
    if not text:
        return None
    text = text.replace(" ", "0")  # Qualcomm pads each byte with a blank
    if not hex_digits(text) or len(text) > digits:
        raise fields.fail(name, f"is not hex of up to {digits} digits")
    return text


def _cell(fields: Fields, area: str | None, digits: int = 8) -> str | None:
    # With an area, a line that ends before the cell or behind the comma after it was cut.
    if area is not None and fields.left <= 1 and fields.peek().absent:
        raise fields.fail("ci", "is missing")
    return fields.optional_hexadecimal("ci", digits)


def _circuit(fields: Fields, n: int | None, stat: int) -> CircuitRegistration:
    lac = _area(fields, "lac")
    ci = _cell(fields, lac)
    if fields.left == 2 and not _is_act(fields.peek()):
        _cell(fields, _area(fields, "lac"))  # Samsung repeats area and cell
        return CircuitRegistration(n, stat, lac, ci)
    act = fields.optional_integer("act", 0, 99)
    return CircuitRegistration(n, stat, lac, ci, act, *_cause(fields))


def _packet(fields: Fields, n: int | None, stat: int) -> PacketRegistration:
    lac = _area(fields, "lac")
    ci = _cell(fields, lac)
    act = fields.optional_integer("act", 0, 99)
    rac = fields.optional_hexadecimal("rac", 4)
    return PacketRegistration(n, stat, lac, ci, act, rac, *_cause(fields))


def _eps(fields: Fields, n: int | None, stat: int) -> EpsRegistration:
    tac, rac = _area(fields, "tac"), None
    if fields.left >= 3 and not _is_act(fields.peek(1)):
        rac = fields.optional_hexadecimal("rac", 4)  # Novatel and Telit: area, then cell
    ci = _cell(fields, tac)
    act = fields.optional_integer("act", 0, 99)
    if fields.left == 5 or (fields.left in {1, 3} and _is_rac(fields.peek(), fields.peek(1))):
        rac = fields.optional_hexadecimal("rac", 4)  # u-blox, Quectel: <rac_or_mme>
    if fields.left not in {0, 2, 4}:
        raise fields.fail("the end", "is missing")
    cause_type, reject_cause = _cause(fields)
    active, tau = fields.bits("active_time", 8), fields.bits("periodic_tau_ext", 8)
    return EpsRegistration(n, stat, tac, ci, act, rac, cause_type, reject_cause, active, tau)


def _five_g(fields: Fields, n: int | None, stat: int) -> FiveGRegistration:
    tac = _area(fields, "tac", 6)
    ci = _cell(fields, tac, 16)  # some pad the five octets with zeros
    act = fields.optional_integer("act", 0, 99)
    length = fields.optional_integer("allowed_nssai_length", 0, 255)
    nssai = fields.optional_text("allowed_nssai")
    return FiveGRegistration(n, stat, tac, ci, act, length, nssai, *_cause(fields))


def _cause(fields: Fields) -> tuple[int | None, int | None]:
    if fields.left == 1 and not fields.peek().absent:
        raise fields.fail("reject_cause", "is missing")  # the line was cut
    cause_type = fields.optional_integer("cause_type", 0, 255)
    reject_cause = fields.optional_integer("reject_cause", 0, 255)
    if cause_type is not None and reject_cause is None and not fields.left:
        raise fields.fail("reject_cause", "is missing")
    return cause_type, reject_cause


_TAILS = {"+CREG": _circuit, "+CGREG": _packet, "+CEREG": _eps, "+C5GREG": _five_g}


class RegistrationNotice(Notice, frozen=True):
    """+CREG, +CGREG, +CEREG or +C5GREG as a notice."""

    value: NetworkRegistration


def _notice(line: str, _context: str | None) -> RegistrationNotice:
    name = name_before_colon(line)
    return RegistrationNotice(name, line, read_line(line, name))


for _name in _TAILS:
    register(_name, _notice)
