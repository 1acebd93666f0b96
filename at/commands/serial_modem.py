"""Nordic's Serial Modem firmware: #XSMVER #XUUID #XRESET #XMODEMRESET and its notices.

Sources: its own documentation. Failures are plain ERROR, or numbers in a later notice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from at.commands.identity import Uuid, uuid_text
from at.protocol.command import Command, OkCommand
from at.protocol.notices import Notice, register
from at.protocol.values import Fields, Record, after_name, name_before_colon, only_row, single_line


@dataclass(frozen=True, slots=True)
class SerialModemVersion(Record):
    """Answer of #XSMVER: the build, the SDK, and the customer's own version."""

    git_describe: str
    ncs: str
    customer: str | None = None


@dataclass(frozen=True, slots=True)
class ModemResetResult(Record):
    """Answer of #XMODEMRESET: `step` 0 is success; the modem is then in functional mode 0."""

    step: int
    err: int | None = None


@dataclass(frozen=True, slots=True)
class ModemReport(Record):
    """#XMODEM: FAULT, SHUTDOWN or INIT; all subscriptions are gone after it."""

    event: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataModeEnd(Record):
    """#XDATAMODE: 0 if all data was accepted, -1 if not."""

    status: int


@dataclass(frozen=True, slots=True)
class SerialModemNotice(Notice):
    """A notice of Serial Modem, told apart by the type of `value`."""

    value: Record


@dataclass(frozen=True, slots=True)
class ReadSerialModemVersion(Command[SerialModemVersion]):
    """AT#XSMVER: an AT host answers ERROR to it."""

    name: ClassVar[str] = "#XSMVER"
    prefix: ClassVar[str] = "#XSMVER"

    def parse(self, lines: Sequence[str]) -> SerialModemVersion:
        """Return the versions."""
        fields = only_row(lines, self.name)
        answer = SerialModemVersion(
            fields.quoted("git_describe"), fields.quoted("ncs"), fields.optional_quoted("customer")
        )
        fields.end()
        return answer


@dataclass(frozen=True, slots=True)
class ReadOldSerialModemVersion(ReadSerialModemVersion):
    """AT#XSLMVER, the name before the firmware was renamed."""

    name: ClassVar[str] = "#XSLMVER"
    prefix: ClassVar[str] = "#XSLMVER"


@dataclass(frozen=True, slots=True)
class ReadSerialModemUuid(Command[Uuid]):
    """AT#XUUID: the device."""

    name: ClassVar[str] = "#XUUID"
    prefix: ClassVar[str] = "#XUUID"

    def parse(self, lines: Sequence[str]) -> Uuid:
        """Return the UUID."""
        text = after_name(single_line(lines, self.name), self.name).strip('"')
        return Uuid(uuid_text(text, self.name))


@dataclass(frozen=True, slots=True)
class ResetSerialModem(OkCommand):
    """AT#XRESET: OK, then "Ready" about two seconds later."""

    name: ClassVar[str] = "#XRESET"


@dataclass(frozen=True, slots=True)
class ResetModem(Command[ModemResetResult]):
    """AT#XMODEMRESET."""

    name: ClassVar[str] = "#XMODEMRESET"
    prefix: ClassVar[str] = "#XMODEMRESET"
    timeout_s: ClassVar[float] = 30.0

    def parse(self, lines: Sequence[str]) -> ModemResetResult:
        """Return the step that was reached."""
        return _reset(only_row(lines, self.name))


def register_readers(readers: Mapping[str, Callable[[Fields], Record]]) -> None:
    """Register a parser for the notices of each name; a reader must read all fields of a line."""

    def parser(line: str, _context: str | None) -> SerialModemNotice:
        name = name_before_colon(line)
        fields = Fields.of(line, name)
        value = readers[name](fields)
        fields.end()
        return SerialModemNotice(name, line, value)

    for name in readers:
        register(name, parser)


def _reset(fields: Fields) -> ModemResetResult:
    answer = ModemResetResult(fields.integer("step", 0, 99), fields.optional_integer("err"))
    fields.end()
    return answer


def _report(fields: Fields) -> ModemReport:
    event = fields.text("event")
    if event not in {"FAULT", "SHUTDOWN", "INIT"}:
        raise fields.fail("event", "is unknown")
    values = []
    while fields.left:
        text = fields.text("value")
        if not re.fullmatch(r"-?(?:0[xX])?[0-9A-Fa-f]+", text, re.ASCII):
            raise fields.fail("value", "is no number")
        values.append(text)
    if not values:
        raise fields.fail("value", "is missing")
    return ModemReport(event, tuple(values))


def _data_mode(fields: Fields) -> DataModeEnd:
    return DataModeEnd(fields.integer("status"))


register_readers({"#XMODEM": _report, "#XDATAMODE": _data_mode, "#XMODEMRESET": _reset})
