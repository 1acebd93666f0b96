"""What the Serial Modem prints on its second UART: #XLOG #XTRACE, of which one is on at most."""

from dataclasses import dataclass

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.values import Fields, Record


@dataclass(frozen=True, slots=True)
class LogMode(Record):
    """Answer of #XLOG?: 0 off, 1 AT texts redacted, 2 AT texts as hex, with their secrets."""

    mode: int


@dataclass(frozen=True, slots=True)
class TraceMode(Record):
    """Answer of #XTRACE?: 1 while the modem's trace is printed."""

    mode: int


@at_command("AT#XLOG?")
class ReadLogMode(Command[LogMode]):
    """AT#XLOG?."""

    def read(self, fields: Fields) -> LogMode:
        """Return the mode."""
        return LogMode(fields.integer("mode", 0, 2))


@at_command("AT#XLOG=")
class SetLogMode(OkCommand):
    """AT#XLOG=<mode>: ERROR while the trace is on."""

    mode: int


@at_command("AT#XTRACE?")
class ReadTraceMode(Command[TraceMode]):
    """AT#XTRACE?: ERROR of builds that print no trace."""

    def read(self, fields: Fields) -> TraceMode:
        """Return the mode."""
        return TraceMode(fields.integer("mode", 0, 1))


@at_command("AT#XTRACE=")
class SetTraceMode(OkCommand):
    """AT#XTRACE=<mode>: ERROR while the log is on."""

    mode: int
