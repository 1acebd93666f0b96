"""Operators and connection: +COPS (read, scan), +CSCON, +CEMODE, +CGATT (TS 27.007)."""

import re
from collections.abc import Sequence
from typing import Annotated

from at.protocol.command import Command, OkCommand, Parameters, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import listed, optional, record, within
from at.protocol.values import Fields, Record, Value, after_name, split

# Some phones close a network before its access technology: (2,"T","T","310260"),2)
_EARLY_CLOSE = re.compile(r'"\),(?=[0-9]{1,2}\))', re.ASCII)


class Operator(Record, frozen=True):
    """Answer of +COPS?; without a network only `mode` is known."""

    mode: Annotated[int, within(0, 5)]
    format: Annotated[int | None, optional(0, 3)] = None
    oper: Annotated[str | None, Fields.optional_text] = None
    act: Annotated[int | None, optional(0, 99)] = None


class ScannedNetwork(Record, frozen=True):
    """One network of a scan: stat 0 unknown, 1 available, 2 current, 3 forbidden."""

    stat: Annotated[int, within(0, 3)]
    long: Annotated[str | None, Fields.optional_text]
    short: Annotated[str | None, Fields.optional_text]
    numeric: Annotated[str, Fields.quoted]
    act: Annotated[int | None, optional(0, 99)] = None


class Networks(Record, frozen=True):
    """Answer of +COPS=?: () means that no network was found."""

    networks: tuple[ScannedNetwork, ...]


class ConnectionStatus(Record, frozen=True):
    """+CSCON: mode 0 idle, 1 connected; `n` is set in a read reply."""

    n: int | None
    mode: int
    state: int | None = None
    access: int | None = None


class OperationMode(Record, frozen=True):
    """Answer of +CEMODE?."""

    mode: Annotated[int, within(0, 3)]


class OperationModes(Record, frozen=True):
    """Answer of +CEMODE=?."""

    modes: Annotated[tuple[int, ...], listed(0, 3)]


class Attachment(Record, frozen=True):
    """Answer of +CGATT?: 0 detached, 1 attached."""

    state: Annotated[int, within(0, 1)]


class ConnectionNotice(Notice, frozen=True):
    """+CSCON as a notice."""

    value: ConnectionStatus


@at_command("AT+COPS?")
class ReadOperator(Command[Operator], frozen=True):
    """AT+COPS?."""

    def read(self, fields: Fields) -> Operator:
        """Return mode and operator."""
        if fields.left == 2 and not fields.peek(1).absent:
            raise fields.fail("oper", "is missing")
        return record(Operator)(fields)


@at_command("AT+COPS=?")
class ScanNetworks(Command[Networks], frozen=True):
    """AT+COPS=?: minutes, and the modem may drop its connection meanwhile."""

    def parse(self, lines: Sequence[str]) -> Networks:
        """Return the networks; the lists of modes and formats behind them are left out."""
        text = ",".join(_without_name(line, self.name) for line in lines if line.strip())
        if not lines:
            raise ParseError(f"{self.name}: the line is missing")
        networks = []
        for value in split(_balanced(_EARLY_CLOSE.sub('",', text))):
            if value.absent:
                continue
            if value.items is None:
                raise ParseError(f"{self.name}: {value.text!r} stands where a network must")
            network = _network(value.items)
            if network is not None:
                networks.append(network)
        return Networks(tuple(networks))


@at_command("AT%COPS=?")
class ForceNetworkScan(ScanNetworks, frozen=True):
    """AT%COPS=?: the same scan with priority; traffic and registration wait for it."""


@at_command("AT+COPS=")
class SelectOperator(OkCommand, frozen=True):
    """AT+COPS: mode 0 automatic; 1 by `numeric` MCC and MNC, at most with an access technology."""

    mode: int = 0
    numeric: str | None = None
    act: int | None = None

    def parameters(self) -> Parameters:
        """Return mode, format (numeric), operator and technology."""
        return self.mode, (None if self.numeric is None else 2), self.numeric, self.act


@at_command("AT+CSCON?")
class ReadConnection(Command[ConnectionStatus], frozen=True):
    """AT+CSCON?."""

    def read(self, fields: Fields) -> ConnectionStatus:
        """Return the connection."""
        return _connection(fields, fields.integer("n", 0, 3))


@at_command("AT+CSCON=")
class SetConnectionNotices(OkCommand, frozen=True):
    """AT+CSCON=<n>."""

    n: int = 1


@at_command("AT+CEMODE?")
class ReadOperationMode(Command[OperationMode], frozen=True):
    """AT+CEMODE?."""


@at_command("AT+CEMODE=?")
class TestOperationMode(Command[OperationModes], frozen=True):
    """AT+CEMODE=?."""


@at_command("AT+CGATT?")
class ReadAttachment(Command[Attachment], frozen=True):
    """AT+CGATT?."""


def _without_name(line: str, name: str) -> str:
    """Return a line's content; the later lines of a scan may carry the name again, or not."""
    return after_name(line, name) if line.startswith(name) else line.strip()


def _balanced(text: str) -> str:
    """Return `text` without a ")" that some Sierra modems leave at its end."""
    outside = re.sub(r'"[^"]*"', "", text)
    if outside.count(")") == outside.count("(") + 1 and text.rstrip(" ,").endswith(",)"):
        return text.rstrip(" ,")[:-1]
    return text


def _network(items: Sequence[Value]) -> ScannedNetwork | None:
    """Return a network; None for the lists of modes and formats that may follow them."""
    if len(items) < 4 or not any(item.quoted for item in items):
        if any(item.quoted for item in items):
            raise ParseError("+COPS: a network is cut short")
        return None
    fields = Fields(items, "+COPS")
    network = record(ScannedNetwork)(fields)
    if fields.left and fields.peek().text is not None:
        fields.integer("subact", 0, 99)  # 5G modems say more of the technology
    fields.end()
    return network


def _connection(fields: Fields, n: int | None = None) -> ConnectionStatus:
    return ConnectionStatus(
        n,
        fields.integer("mode", 0, 1),
        fields.optional_integer("state", 0, 255),
        fields.optional_integer("access", 0, 255),
    )


register_readers(ConnectionNotice, {"+CSCON": _connection})
