"""Firmware for a kit with Nordic's Serial Modem: #XFOTA from a URL, #XDFU* over the UART.

Sources: its own documentation. Failures are plain ERROR, or numbers in a later notice.
"""

from collections.abc import Sequence
from typing import Annotated, Self

from at.commands.serial_modem.application import SerialModemNotice
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import optional, record, within
from at.protocol.values import Fields, Record, Value

_INFO = 2**32


class UpdateArea(Record, frozen=True):
    """Answer of #XFOTA=7: 2621440 as offset means that the area must be erased first."""

    size: Annotated[int, within(0, _INFO)]
    offset: Annotated[int, within(0, _INFO)]


class UpdateProgress(Record, frozen=True):
    """#XFOTA: stage 0 init, 1 download, 2 erase pending, 3 erased, 4 downloaded, 5 complete.

    `status` is 0 ok, 1 error, 2 cancelled, 3 reverted; `info` a percentage or an error.
    """

    stage: Annotated[int, within(0, 5)]
    status: Annotated[int, within(0, 3)]
    info: Annotated[int | None, optional(-_INFO, _INFO)] = None


class WiredUpdate(Record, frozen=True):
    """#XDFU: operation 1 write, 2 apply; status 0 done, -1 failed."""

    type: Annotated[int, within(0, 3)]
    operation: Annotated[int, within(1, 2)]
    status: Annotated[int, Fields.integer]


class UpdateProgressNotice(Notice, frozen=True):
    """#XFOTA as a notice."""

    value: UpdateProgress


@at_command("AT#XFOTA=")
class UpdateOverTheAir(OkCommand, frozen=True):
    """AT#XFOTA=<op>[,<url>[,<sec_tag>[,<pdn>]]]: 0 stop, 1 application, 2 modem delta, 9 erase ...

    The progress comes as UpdateProgressNotice.
    """

    op: int
    url: str | None = None
    sec_tag: int | None = None
    pdn: int | None = None


@at_command("AT#XFOTA=7")
class ReadUpdateArea(Command[UpdateArea], frozen=True):
    """AT#XFOTA=7."""


class BootloaderInfo(Record, frozen=True):
    """Answer of #XBOOTINFO: one number, which the command alone says the meaning of.

    `version` is the counter of the boot loader's slot in use, `slot` that slot: 0 s0, 1 s1.
    """

    value: int
    version: int | None = None
    slot: int | None = None


@at_command("AT#XBOOTINFO=")
class ReadBootloader(Command[BootloaderInfo], frozen=True):
    """AT#XBOOTINFO=<op>: 0 version, 1 slot; ERROR of builds with one boot loader."""

    op: int | None = None

    def read(self, fields: Fields) -> BootloaderInfo:
        """Return the number, and what it is."""
        value = fields.integer("value", 0, 1 if self.op == 1 else _INFO - 1)
        return BootloaderInfo(
            value, value if self.op == 0 else None, value if self.op == 1 else None
        )

    @classmethod
    def captured(cls, arguments: Sequence[Value]) -> Self | None:
        """Return the command of an operation, or of none that is known."""
        op = arguments[0].text if arguments else None
        return cls(int(op) if op in {"0", "1"} else None)


@at_command("AT#XFOTA?")
class ReadUpdateProgress(Command[UpdateProgress], frozen=True):
    """AT#XFOTA?."""


@at_command("AT#XDFUINIT=")
class BeginWiredUpdate(OkCommand, frozen=True):
    """AT#XDFUINIT=<type>[,<size>]: 0 application, 1 modem delta, 2 full modem, 3 boot loader."""

    type: int
    size: int | None = None


@at_command("AT#XDFUWRITE=")
class WriteWiredUpdate(OkCommand, frozen=True):
    """AT#XDFUWRITE=<type>,<address>,<length>: raw bytes follow its OK (see Modem.transfer)."""

    type: int
    address: int
    length: int


@at_command("AT#XDFUAPPLY=")
class ApplyWiredUpdate(OkCommand, frozen=True):
    """AT#XDFUAPPLY=<type>."""

    type: int


register_readers(UpdateProgressNotice, {"#XFOTA": record(UpdateProgress)})
register_readers(SerialModemNotice, {"#XDFU": record(WiredUpdate)})
