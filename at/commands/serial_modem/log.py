"""What the Serial Modem prints on its second UART: #XLOG #XTRACE, of which one is on at most."""

from typing import Annotated

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.record_fields import within
from at.protocol.values import Record


class LogMode(Record, frozen=True):
    """Answer of #XLOG?: 0 off, 1 AT texts redacted, 2 AT texts as hex, with their secrets."""

    mode: Annotated[int, within(0, 2)]


class TraceMode(Record, frozen=True):
    """Answer of #XTRACE?: 1 while the modem's trace is printed."""

    mode: Annotated[int, within(0, 1)]


@at_command("AT#XLOG?")
class ReadLogMode(Command[LogMode], frozen=True):
    """AT#XLOG?."""


@at_command("AT#XLOG=")
class SetLogMode(OkCommand, frozen=True):
    """AT#XLOG=<mode>: ERROR while the trace is on."""

    mode: int


@at_command("AT#XTRACE?")
class ReadTraceMode(Command[TraceMode], frozen=True):
    """AT#XTRACE?: ERROR of builds that print no trace."""


@at_command("AT#XTRACE=")
class SetTraceMode(OkCommand, frozen=True):
    """AT#XTRACE=<mode>: ERROR while the log is on."""

    mode: int
