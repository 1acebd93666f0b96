"""Nordic's Serial Modem firmware: #XSMVER #XUUID #XRESET #XMODEMRESET #XFOTA #XDFU* #XNRFCLOUD*.

Sources: its own documentation. Failures are plain ERROR, or numbers in a later notice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from at.command import Command, Form, Parameters
from at.commands.identity import Uuid, uuid_text
from at.errors import ParseError, UnsafeArgument
from at.notices import Notice, register
from at.records import Record
from at.values import Fields, after_name, only_row, single_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from at.values import Value

_INFO = 2**32
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SerialModemVersion(Record):
    """Answer of #XSMVER: the build, the SDK, and what a customer added."""

    git_describe: str
    ncs: str
    customer: str | None = None


@dataclass(frozen=True, slots=True)
class ModemResetResult(Record):
    """Answer of #XMODEMRESET: `step` 0 is success; the modem is then in functional mode 0."""

    step: int
    err: int | None = None


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
class CloudPosition(Record):
    """#XNRFCLOUDPOS: status 0 ok, -1 failed, > 0 an error of the cloud.

    `type` is 0 for a single cell, 1 for several, 2 for Wi-Fi.
    """

    status: int
    type: int | None = None
    lat: float | None = None
    lon: float | None = None
    uncertainty: float | None = None


@dataclass(frozen=True, slots=True)
class CloudState(Record):
    """#XNRFCLOUD: a read reply adds `sec_tag` and `device_id`."""

    ready: int
    send_location: int
    sec_tag: int | None = None
    device_id: str | None = None


@dataclass(frozen=True, slots=True)
class ModemReport(Record):
    """#XMODEM: FAULT, SHUTDOWN or INIT; all subscriptions are gone after it."""

    event: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataModeEnd(Record):
    """#XDATAMODE: 0 when all was taken, -1 when not."""

    status: int


@dataclass(frozen=True, slots=True)
class GnssPosition(Record):
    """#XGNSSPOS: degrees, metres, metres a second; `datetime` is UTC as text."""

    lat: float
    lon: float
    alt: float
    acc: float
    speed: float
    heading: float
    datetime: str


@dataclass(frozen=True, slots=True)
class GnssState(Record):
    """#XGNSS: state 0 stopped, 1 started, 2 wake-up, 3 sleep on time-out, 4 sleep on a fix."""

    service: int
    state: int


@dataclass(frozen=True, slots=True)
class UpdateProgressNotice(Notice):
    """#XFOTA, unasked."""

    value: UpdateProgress


@dataclass(frozen=True, slots=True)
class SerialModemNotice(Notice):
    """The other notices of Serial Modem, told apart by the type of `value`."""

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
class ResetSerialModem(Command[None]):
    """AT#XRESET: OK, then "Ready" about two seconds later."""

    name: ClassVar[str] = "#XRESET"

    def parse(self, lines: Sequence[str]) -> None:
        """Take the OK."""


@dataclass(frozen=True, slots=True)
class ResetModem(Command[ModemResetResult]):
    """AT#XMODEMRESET."""

    name: ClassVar[str] = "#XMODEMRESET"
    prefix: ClassVar[str] = "#XMODEMRESET"
    timeout_s: ClassVar[float] = 30.0

    def parse(self, lines: Sequence[str]) -> ModemResetResult:
        """Return how far it came."""
        return _reset(only_row(lines, self.name))


@dataclass(frozen=True, slots=True)
class UpdateOverTheAir(Command[None]):
    """AT#XFOTA=<op>[,<url>[,<sec_tag>[,<pdn>]]]: 0 stop, 1 application, 2 modem delta, 9 erase ...

    How it goes on comes as UpdateProgressNotice.
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

    def parse(self, lines: Sequence[str]) -> None:
        """Take the OK."""


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
        """Take operation 7."""
        return cls() if arguments and arguments[0].text == "7" else None


@dataclass(frozen=True, slots=True)
class BeginWiredUpdate(Command[None]):
    """AT#XDFUINIT=<type>[,<size>]: 0 application, 1 modem delta, 2 full modem, 3 boot loader."""

    type: int
    size: int | None = None

    name: ClassVar[str] = "#XDFUINIT"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 60.0

    def parameters(self) -> Parameters:
        """Return type and size."""
        return self.type, self.size

    def parse(self, lines: Sequence[str]) -> None:
        """Take the OK."""


@dataclass(frozen=True, slots=True)
class WriteWiredUpdate(Command[None]):
    """AT#XDFUWRITE=<type>,<address>,<length>: raw bytes follow its OK (see Modem.transfer)."""

    type: int
    address: int
    length: int

    name: ClassVar[str] = "#XDFUWRITE"
    form: ClassVar[Form] = Form.SET

    def parameters(self) -> Parameters:
        """Return type, address and length."""
        return self.type, self.address, self.length

    def parse(self, lines: Sequence[str]) -> None:
        """Take the OK."""


@dataclass(frozen=True, slots=True)
class ApplyWiredUpdate(Command[None]):
    """AT#XDFUAPPLY=<type>."""

    type: int

    name: ClassVar[str] = "#XDFUAPPLY"
    form: ClassVar[Form] = Form.SET
    timeout_s: ClassVar[float] = 120.0

    def parameters(self) -> Parameters:
        """Return the type."""
        return (self.type,)

    def parse(self, lines: Sequence[str]) -> None:
        """Take the OK."""


@dataclass(frozen=True, slots=True)
class LocateByCloud(Command[None]):
    """AT#XNRFCLOUDPOS: `cells` 0-15; the host gives the Wi-Fi scan, at least two access points.

    The firmware measures cells itself meanwhile: do not use %NCELLMEAS.
    """

    cells: int
    access_points: tuple[tuple[str, int | None], ...] = ()
    """MAC address and level in dBm (-128..0), if it is known."""

    name: ClassVar[str] = "#XNRFCLOUDPOS"
    form: ClassVar[Form] = Form.SET

    def parameters(self) -> Parameters:
        """Return counts, then address and level of each access point."""
        if not 0 <= self.cells <= 15:
            raise UnsafeArgument(f"a count of {self.cells} cells is not in 0..15")
        if len(self.access_points) == 1:
            raise UnsafeArgument("a position by Wi-Fi needs at least two access points")
        listed: list[int | str | None] = []
        for mac, rssi in self.access_points:
            if not _MAC.fullmatch(mac):
                raise UnsafeArgument(f"{mac!r} is no MAC address")
            if rssi is not None and not -128 <= rssi <= 0:
                raise UnsafeArgument(f"a level of {rssi} dBm is not in -128..0")
            listed += [mac] if rssi is None else [mac, rssi]
        return (self.cells, 1 if self.access_points else 0, *listed)

    def parse(self, lines: Sequence[str]) -> None:
        """Take the OK."""


@dataclass(frozen=True, slots=True)
class ReadCloudState(Command[CloudState]):
    """AT#XNRFCLOUD?."""

    name: ClassVar[str] = "#XNRFCLOUD"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "#XNRFCLOUD"

    def parse(self, lines: Sequence[str]) -> CloudState:
        """Return connection and identity."""
        return _cloud_state(only_row(lines, self.name))


def _reset(fields: Fields) -> ModemResetResult:
    answer = ModemResetResult(fields.integer("step", 0, 99), fields.optional_integer("err"))
    fields.end()
    return answer


def _progress(line: str, _context: str | None) -> UpdateProgressNotice:
    fields = Fields.of(line, "#XFOTA")
    value = UpdateProgress(
        fields.integer("stage", 0, 5),
        fields.integer("status", 0, 3),
        fields.optional_integer("info", -_INFO, _INFO),
    )
    fields.end()
    return UpdateProgressNotice("#XFOTA", line, value)


def _wired(fields: Fields) -> WiredUpdate:
    return WiredUpdate(
        fields.integer("type", 0, 3), fields.integer("operation", 1, 2), fields.integer("status")
    )


def _position(fields: Fields) -> CloudPosition:
    if fields.left == 1:
        status = fields.integer("status")
        if status == 0:
            raise fields.fail("type", "is missing")
        return CloudPosition(status)
    # Older builds print a position without a status in front.
    status = fields.integer("status") if fields.left == 5 else 0
    kind = fields.integer("type", 0, 2)
    return CloudPosition(
        status,
        kind,
        _decimal(fields, "lat", 90),
        _decimal(fields, "lon", 180),
        _decimal(fields, "uncertainty"),
    )


def _cloud_state(fields: Fields) -> CloudState:
    answer = CloudState(
        fields.integer("ready", 0, 1),
        fields.integer("send_location", 0, 1),
        fields.optional_integer("sec_tag", 0, 2**32 - 1),
        fields.optional_quoted("device_id"),
    )
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


def _gnss_position(fields: Fields) -> GnssPosition:
    return GnssPosition(
        _decimal(fields, "lat", 90),
        _decimal(fields, "lon", 180),
        _decimal(fields, "alt"),
        _decimal(fields, "acc"),
        _decimal(fields, "speed"),
        _decimal(fields, "heading"),
        fields.quoted("datetime"),
    )


def _gnss_state(fields: Fields) -> GnssState:
    return GnssState(fields.integer("service", 0, 9), fields.integer("state", 0, 4))


def _decimal(fields: Fields, name: str, limit: float | None = None) -> float:
    text = fields.text(name)
    if not re.fullmatch(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,12})?", text, re.ASCII):
        raise fields.fail(name, "is no number")
    number = float(text)
    if limit is not None and abs(number) > limit:
        raise fields.fail(name, f"is {text}, beyond {limit:g}")
    return number


_READERS = {
    "#XDFU": _wired,
    "#XNRFCLOUDPOS": _position,
    "#XNRFCLOUD": _cloud_state,
    "#XMODEM": _report,
    "#XDATAMODE": _data_mode,
    "#XGNSSPOS": _gnss_position,
    "#XGNSS": _gnss_state,
    "#XMODEMRESET": _reset,
}


def _notice(line: str, _context: str | None) -> SerialModemNotice:
    name = line.partition(":")[0].strip().upper()
    fields = Fields.of(line, name)
    reader = _READERS.get(name)
    if reader is None:
        raise ParseError(f"{name}: nobody reads it")
    value = reader(fields)
    fields.end()
    return SerialModemNotice(name, line, value)


register("#XFOTA", _progress)
for _name in _READERS:
    register(_name, _notice)
