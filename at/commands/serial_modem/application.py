"""Nordic's Serial Modem firmware: #XSMVER #XUUID #XRESET #XMODEMRESET and its notices.

Sources: its own documentation. Failures are plain ERROR, or numbers in a later notice.
"""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from at.commands.identity import Uuid, uuid_text
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import record, within
from at.protocol.values import Fields, Record, named_text

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?![.\d]).*", re.ASCII | re.DOTALL)
_FIRST_OF_2 = (1, 99)  # trees before the release of 2.0.0 count as 1.99


class SerialModemVersion(Record, frozen=True):
    """Answer of #XSMVER: the build, the SDK, and the customer's own version.

    The build is a tag, such as "v2.0.0", perhaps with the commits since and "-dirty" behind it.
    """

    derived: ClassVar[tuple[str, ...]] = ("major",)

    git_describe: Annotated[str, Fields.quoted]
    ncs: Annotated[str, Fields.quoted]
    customer: Annotated[str | None, Fields.optional_quoted] = None

    @property
    def major(self) -> int | None:
        """The generation of its commands, 1 or 2 or a later one; None where no tag tells it."""
        match = _VERSION.fullmatch(self.git_describe)
        if match is None:
            return None
        numbers = tuple(map(int, match.groups()))
        return 2 if _FIRST_OF_2 <= numbers < (2,) else numbers[0]

    @property
    def text(self) -> str:
        """The version as a person reads it: "Serial Modem v2.0.0 (SDK 3.4.0)"."""
        customer = f", {self.customer}" if self.customer else ""
        return f"Serial Modem {self.git_describe} (SDK {self.ncs}{customer})"


class OldSerialModemVersion(Record, frozen=True):
    """Answer of #XSLMVER: the SDK, the modem library, and the customer's own version.

    The first firmwares told a bare number alone: "#XSLMVER: 1.2".
    """

    ncs: str
    libmodem: str | None = None
    customer: str | None = None


class ModemResetResult(Record, frozen=True):
    """Answer of #XMODEMRESET: `step` 0 is success; the modem is then in functional mode 0."""

    step: Annotated[int, within(0, 99)]
    err: Annotated[int | None, Fields.optional_integer] = None


class ModemReport(Record, frozen=True):
    """#XMODEM: FAULT, SHUTDOWN or INIT; all subscriptions are gone after it."""

    event: str
    values: tuple[str, ...] = ()


class DataModeEnd(Record, frozen=True):
    """#XDATAMODE: 0 if all data was accepted, -1 if not."""

    status: Annotated[int, Fields.integer]


class SerialModemNotice(Notice, frozen=True):
    """A notice of Serial Modem, told apart by the type of `value`."""

    value: Record


@at_command("AT#XSMVER")
class ReadSerialModemVersion(Command[SerialModemVersion], frozen=True):
    """AT#XSMVER: an AT host answers ERROR to it."""


@at_command("AT#XSLMVER")
class ReadOldSerialModemVersion(Command[OldSerialModemVersion], frozen=True):
    """AT#XSLMVER: the firmware before it was renamed, which was released with the SDK."""

    def read(self, fields: Fields) -> OldSerialModemVersion:
        """Return the version, in either form."""
        if not fields.peek().quoted:
            return OldSerialModemVersion(fields.text("ncs"))
        texts = fields.quoted("ncs"), fields.quoted("libmodem")
        return OldSerialModemVersion(*texts, fields.optional_quoted("customer"))


@at_command("AT#XUUID")
class ReadSerialModemUuid(Command[Uuid], frozen=True):
    """AT#XUUID: the device."""

    def parse(self, lines: Sequence[str]) -> Uuid:
        """Return the UUID."""
        return Uuid(uuid_text(named_text(lines, self.name).strip('"'), self.name))


@at_command("AT#XRESET")
class ResetSerialModem(OkCommand, frozen=True):
    """AT#XRESET: OK, then "Ready" about two seconds later."""


@at_command("AT#XMODEMRESET")
class ResetModem(Command[ModemResetResult], frozen=True):
    """AT#XMODEMRESET."""


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


register_readers(
    SerialModemNotice,
    {
        "#XMODEM": _report,
        "#XDATAMODE": record(DataModeEnd),
        "#XMODEMRESET": record(ModemResetResult),
    },
)
