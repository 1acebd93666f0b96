"""Identity of the modem: +CGMI +CGMM +CGMR %SHORTSWVER %HWVERSION +CGSN %XMODEMUUID %DEVICEUUID."""

import re
from collections.abc import Sequence
from typing import Annotated, Self, TypeVar, cast

from at.protocol import values
from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError
from at.protocol.record_fields import listed

R = TypeVar("R", bound=values.Record)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_CREATING = re.compile(r"creating [a-z ]+\.*", re.ASCII | re.IGNORECASE)
# <snt> of +CGSN -> what comes back, and how many digits it has.
_SERIAL_NUMBERS = {1: ("imei", 15), 2: ("imeisv", 16), 3: ("svn", 2)}


class Manufacturer(values.Record, frozen=True):
    """Answer of +CGMI."""

    manufacturer: str


class Model(values.Record, frozen=True):
    """Answer of +CGMM."""

    model: str


class Revision(values.Record, frozen=True):
    """Answer of +CGMR: "mfw_nrf9160_1.3.7" (see at.protocol.firmware_version)."""

    revision: str


class ShortVersion(values.Record, frozen=True):
    """Answer of %SHORTSWVER: the revision without "mfw_"."""

    version: str


class HardwareVersion(values.Record, frozen=True):
    """Answer of %HWVERSION: "nRF9161 LACA A0A"."""

    hw_version: str


class Uuid(values.Record, frozen=True):
    """A UUID as the modem writes it."""

    uuid: str


class SerialNumber(values.Record, frozen=True):
    """Answer of +CGSN: what `snt` asked for is set, the rest is None."""

    snt: int
    serial_number: str | None = None
    imei: str | None = None
    imeisv: str | None = None
    svn: str | None = None


class SerialNumberTypes(values.Record, frozen=True):
    """Answer of +CGSN=?."""

    snts: Annotated[tuple[int, ...], listed(0, 3)]


class _TextCommand(Command[R], frozen=True):
    """One that is answered with a text: behind the name, or bare where it has no prefix."""

    def parse(self, lines: Sequence[str]) -> R:
        """Return the record of the text."""
        text = (_plain_named_text if self.prefix else values.bare_line)(lines, self.name)
        return cast("R", self.answer(text))


@at_command("AT+CGMI", prefix="")
class ReadManufacturer(_TextCommand[Manufacturer], frozen=True):
    """AT+CGMI."""


@at_command("AT+CGMM", prefix="")
class ReadModel(_TextCommand[Model], frozen=True):
    """AT+CGMM."""


@at_command("AT+CGMR", prefix="")
class ReadRevision(_TextCommand[Revision], frozen=True):
    """AT+CGMR: the modem firmware."""


@at_command("AT%SHORTSWVER")
class ReadShortVersion(_TextCommand[ShortVersion], frozen=True):
    """AT%SHORTSWVER."""


@at_command("AT%HWVERSION")
class ReadHardwareVersion(_TextCommand[HardwareVersion], frozen=True):
    """AT%HWVERSION."""


@at_command("AT%XMODEMUUID")
class ReadModemUuid(Command[Uuid], frozen=True):
    """AT%XMODEMUUID: the build of the modem firmware, not the device."""

    def parse(self, lines: Sequence[str]) -> Uuid:
        """Return the UUID."""
        return Uuid(uuid_text(_plain_named_text(lines, self.name), self.name))


@at_command("AT%DEVICEUUID")
class ReadDeviceUuid(Command[Uuid], frozen=True):
    """AT%DEVICEUUID (nRF91x1, nRF93M1): the device. An nRF9160 tells it in a token of %JWT."""

    def parse(self, lines: Sequence[str]) -> Uuid:
        """Return the UUID; at its first use, an nRF93M1 says before it that it makes one."""
        return Uuid(uuid_text(last_told(lines, self.name), self.name))


@at_command("AT+CGSN", prefix="")
class ReadSerialNumber(Command[SerialNumber], frozen=True):
    """AT+CGSN: the serial number, bare."""

    def parse(self, lines: Sequence[str]) -> SerialNumber:
        """Return the bare line, which is an IMEI on many modems."""
        if len(lines) == 1 and values.name_before_colon(lines[0]) == self.name:
            return values.read_row(lines[0], self.name, _number)
        number = values.bare_line(lines, self.name)
        imei = number.partition(",")[0]  # Option modems: IMEI, then their own serial number
        if re.fullmatch(r"[0-9]{15}", imei, re.ASCII):
            return SerialNumber(0, serial_number=number, imei=imei)
        if not re.fullmatch(r"[0-9A-Za-z:./_-]{1,40}", number, re.ASCII):
            raise ParseError(f"{self.name}: the answer is no serial number")
        return SerialNumber(0, serial_number=number)


@at_command("AT+CGSN=")
class ReadImei(Command[SerialNumber], frozen=True):
    """AT+CGSN=<snt>: 1 IMEI, 2 IMEISV, 3 software version; 0 is ReadSerialNumber."""

    snt: int = 1

    def parse(self, lines: Sequence[str]) -> SerialNumber:
        """Return the number in quotes."""
        if self.snt == 0:
            return ReadSerialNumber().parse(lines)
        number = values.read_row(values.single_line(lines, self.name), self.name, _number)
        if number.snt != self.snt:
            raise ParseError(f"{self.name}={self.snt}: a number of the wrong length")
        return number

    @classmethod
    def captured(cls, arguments: Sequence[values.Value]) -> Self | None:
        """Return one for any <snt> of the manual."""
        text = arguments[0].text if len(arguments) == 1 else None
        return cls(int(text)) if text in {"0", "1", "2", "3"} else None


@at_command("AT+CGSN=?")
class TestSerialNumber(Command[SerialNumberTypes], frozen=True):
    """AT+CGSN=?."""


def uuid_text(text: str, name: str) -> str:
    """Return `text` if it is a UUID. Raises ParseError."""
    if not _UUID.fullmatch(text):
        raise ParseError(f"{name}: the answer is not a UUID")
    return text


def last_told(lines: Sequence[str], name: str) -> str:
    """Return the text behind the name in the last line; those before it say "creating ...".

    Raises ParseError.
    """
    filled = [line for line in lines if line.strip()]
    if any(not _CREATING.fullmatch(values.after_name(line, name)) for line in filled[:-1]):
        raise ParseError(f"{name}: {len(filled)} lines where one must stand")
    return _plain_named_text(filled[-1:], name)


def _number(fields: values.Fields) -> SerialNumber:
    digits = fields.text("number")
    for snt, (name, size) in _SERIAL_NUMBERS.items():
        if re.fullmatch(rf"[0-9]{{{size}}}", digits, re.ASCII):
            return SerialNumber(snt, **{name: digits})
    raise fields.fail("number", "has the wrong length")


def _plain_named_text(lines: Sequence[str], name: str) -> str:
    return values.plain_text(values.named_text(lines, name), name)
