"""Firmware for a kit with Nordic's Serial Modem: #XFOTA from a URL, #XDFU* over the UART.

Sources: its own documentation. Failures are plain ERROR, or numbers in a later notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from at.commands.serial_modem import register_readers
from at.protocol.command import Command, Form, OkCommand, Parameters
from at.protocol.notices import Notice, register
from at.protocol.values import Fields, Record, Value, only_row

_INFO = 2**32


@dataclass(frozen=True, slots=True)
class UpdateArea(Record):
    """Answer of #XFOTA=7: 2621440 as offset means that the area must be erased first."""

    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class UpdateProgress(Record):
    """#XFOTA: stage 0 init, 1 download, 2 erase pending, 3 erased, 4 downloaded, 5 complete.

    `status` is 0 ok, 1 error, 2 cancelled, 3 reverted; `info` a percentage or an error.
    """

    stage: int
    status: int
    info: int | None = None


@dataclass(frozen=True, slots=True)
class WiredUpdate(Record):
    """#XDFU: operation 1 write, 2 apply; status 0 done, -1 failed."""

    type: int
    operation: int
    status: int


@dataclass(frozen=True, slots=True)
class UpdateProgressNotice(Notice):
    """#XFOTA as a notice."""

    value: UpdateProgress


@dataclass(frozen=True, slots=True)
class UpdateOverTheAir(OkCommand):
    """AT#XFOTA=<op>[,<url>[,<sec_tag>[,<pdn>]]]: 0 stop, 1 application, 2 modem delta, 9 erase ...

    The progress comes as UpdateProgressNotice.
    """

    op: int
    url: str | None = None
    sec_tag: int | None = None
    pdn: int | None = None

    name: ClassVar[str] = "#XFOTA"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 30.0

    def parameters(self) -> Parameters:
        """Return operation, address, tag and packet network."""
        return self.op, self.url, self.sec_tag, self.pdn


@dataclass(frozen=True, slots=True)
class ReadUpdateArea(Command[UpdateArea]):
    """AT#XFOTA=7."""

    name: ClassVar[str] = "#XFOTA"
    form: ClassVar[Form] = Form.SET
    prefix: ClassVar[str] = "#XFOTA"

    def parameters(self) -> Parameters:
        """Return the operation."""
        return (7,)

    def parse(self, lines: Sequence[str]) -> UpdateArea:
        """Return size and offset."""
        fields = only_row(lines, self.name)
        answer = UpdateArea(fields.integer("size", 0, _INFO), fields.integer("offset", 0, _INFO))
        fields.end()
        return answer

    @classmethod
    def captured(cls, arguments: Sequence[Value]) -> Self | None:
        """Return the command of operation 7."""
        return cls() if arguments and arguments[0].text == "7" else None


@dataclass(frozen=True, slots=True)
class ReadUpdateProgress(Command[UpdateProgress]):
    """AT#XFOTA?."""

    name: ClassVar[str] = "#XFOTA"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "#XFOTA"

    def parse(self, lines: Sequence[str]) -> UpdateProgress:
        """Return how far it is."""
        return _progress_of(only_row(lines, self.name))


@dataclass(frozen=True, slots=True)
class BeginWiredUpdate(OkCommand):
    """AT#XDFUINIT=<type>[,<size>]: 0 application, 1 modem delta, 2 full modem, 3 boot loader."""

    type: int
    size: int | None = None

    name: ClassVar[str] = "#XDFUINIT"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 60.0

    def parameters(self) -> Parameters:
        """Return type and size."""
        return self.type, self.size


@dataclass(frozen=True, slots=True)
class WriteWiredUpdate(OkCommand):
    """AT#XDFUWRITE=<type>,<address>,<length>: raw bytes follow its OK (see Modem.transfer)."""

    type: int
    address: int
    length: int

    name: ClassVar[str] = "#XDFUWRITE"
    form: ClassVar[Form] = Form.SET

    def parameters(self) -> Parameters:
        """Return type, address and length."""
        return self.type, self.address, self.length


@dataclass(frozen=True, slots=True)
class ApplyWiredUpdate(OkCommand):
    """AT#XDFUAPPLY=<type>."""

    type: int

    name: ClassVar[str] = "#XDFUAPPLY"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 120.0

    def parameters(self) -> Parameters:
        """Return the type."""
        return (self.type,)


def _progress_of(fields: Fields) -> UpdateProgress:
    value = UpdateProgress(
        fields.integer("stage", 0, 5),
        fields.integer("status", 0, 3),
        fields.optional_integer("info", -_INFO, _INFO),
    )
    fields.end()
    return value


def _progress(line: str, _context: str | None) -> UpdateProgressNotice:
    return UpdateProgressNotice("#XFOTA", line, _progress_of(Fields.of(line, "#XFOTA")))


def _wired(fields: Fields) -> WiredUpdate:
    return WiredUpdate(
        fields.integer("type", 0, 3), fields.integer("operation", 1, 2), fields.integer("status")
    )


register("#XFOTA", _progress)
register_readers({"#XDFU": _wired})
