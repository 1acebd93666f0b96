"""The modem's clock: +CCLK (local time with zone; TS 27.007, 8.15), the notice %XTIME."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, ClassVar

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import record
from at.protocol.values import Fields, Record, named_text

_CCLK = re.compile(
    r"([0-9]{2}|[0-9]{4})/([0-9]{2})/([0-9]{2}), ?"
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})([+-][0-9]{1,2})?",
    re.ASCII,
)
_QUARTERS_HIGH = 96
_FIRST_OF_1900S = 69  # of two digits, as POSIX reads them: a clock that began at 1970 may say 69
_LAST_START = 2015  # clocks that nobody set begin in 1970, 1980, 2000 or 2015, by their maker


class ModemClock(Record, frozen=True):
    """Answer of +CCLK?: `time` is the modem's text, local; `zz` its zone in quarters of an hour."""

    time: str
    zz: int | None
    local_time: datetime
    """With its zone if the modem gave one, else without."""

    derived: ClassVar[tuple[str, ...]] = ("utc_time",)

    @property
    def is_set(self) -> bool:
        """Whether it was set: else it answers an error, or has run on from its first year."""
        return self.local_time.year > _LAST_START

    @property
    def utc_time(self) -> datetime | None:
        """The same instant in UTC; None when the modem gave no zone."""
        return None if self.zz is None else self.local_time.astimezone(UTC)


def _octets(size: int) -> Callable[[Fields, str], str | None]:
    def read(fields: Fields, name: str) -> str | None:
        text = fields.optional_hexadecimal(name)
        if text is not None and len(text) != 2 * size:
            raise fields.fail(name, f"is not {size} octets")
        return text

    return read


def _utc(fields: Fields, name: str) -> str:
    return fields.present(name, _octets(7)(fields, name))


class NetworkTime(Record, frozen=True):
    """%XTIME: hex octets as they came; `utc_time` is `utc` decoded."""

    tz: Annotated[str | None, _octets(1)]
    utc: Annotated[str, _utc]
    dst: Annotated[str | None, _octets(1)]

    derived: ClassVar[tuple[str, ...]] = ("utc_time",)

    @property
    def utc_time(self) -> datetime | None:
        """The time of six octets of BCD with swapped nibbles, None if they are no time.

        The seventh octet, a zone, is not read: public examples do not agree on it.
        """
        pairs = [self.utc[index + 1] + self.utc[index] for index in range(0, 12, 2)]
        if not all(pair.isdecimal() for pair in pairs):
            return None
        year, month, day, hour, minute, second = (int(pair) for pair in pairs)
        try:
            return datetime(2000 + year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None


class NetworkTimeNotice(Notice, frozen=True):
    """%XTIME as a notice."""

    value: NetworkTime


@at_command("AT+CCLK?")
class ReadClock(Command[ModemClock], frozen=True):
    """AT+CCLK?: an error until the network gave a time or one was set."""

    def parse(self, lines: Sequence[str]) -> ModemClock:
        """Return the time, also of vendors that leave out the quotes."""
        text = named_text(lines, self.name)
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1]
        return read_clock(text)


@at_command("AT+CCLK=")
class SetClock(OkCommand, frozen=True):
    """AT+CCLK=: the clock as text, "yy/MM/dd,hh:mm:ss+zz"; see `clock_text`."""

    time: str


@at_command("AT%XTIME=")
class SetTimeNotices(OkCommand, frozen=True):
    """AT%XTIME=<0|1>."""

    n: int = 1


def clock_text(instant: datetime) -> str:
    """Return an instant with a zone as +CCLK writes it."""
    offset = instant.utcoffset()
    if offset is None:
        raise ValueError("an instant without a zone cannot be written")
    quarters = round(offset.total_seconds() / 900)
    return instant.strftime("%y/%m/%d,%H:%M:%S") + f"{quarters:+03d}"


def read_clock(text: str) -> ModemClock:
    """Return the time of +CCLK's text. Raises ParseError."""
    match = _CCLK.fullmatch(text)
    if match is None:
        raise ParseError("+CCLK: the answer is no time")
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    quarters = None if match[7] is None else int(match[7])
    if quarters is not None and abs(quarters) >= _QUARTERS_HIGH:
        raise ParseError(f"+CCLK: a zone of {quarters} quarters of an hour")
    zone = None if quarters is None else timezone(timedelta(minutes=15 * quarters))
    if year < 100:
        year += 1900 if year >= _FIRST_OF_1900S else 2000
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        if quarters is not None:
            local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ParseError("+CCLK: the answer is no time of any calendar") from None
    return ModemClock(text, quarters, local)


register_readers(NetworkTimeNotice, {"%XTIME": record(NetworkTime)})
