"""The format of a P-GPS file: a header and predictions, checked against the request."""

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.location.agnss_file import ELEMENTS, DamagedAssistance

GPS_EPOCH = datetime(1980, 1, 6, tzinfo=UTC)
LEAP_SECONDS = 18
"""GPS time is so many seconds ahead of UTC since 2017-01-01; no further one is announced."""
MIN_INTERVAL_MIN, MAX_INTERVAL_MIN, INTERVAL_STEP_MIN = 120, 480, 60
"""From one prediction to the next, in minutes."""
MAX_REACH_MIN = 14 * 24 * 60
"""Predictions reach so many minutes ahead at most."""
MAX_PREDICTIONS = MAX_REACH_MIN // MIN_INTERVAL_MIN
_FIT = timedelta(hours=2)
"""A prediction is for the middle of its four hours: it holds so long before, and after."""
_HEADER = struct.Struct("<BBHHHHhi")
_SCHEMA, _ARRAY_TYPE, _ITEMS = 1, 10, 1
_CLOCK, _EPHEMERIS = ELEMENTS[7], ELEMENTS[2]
_SATELLITES = 32
_CLOCK_HEAD = b"\x07\x01\x00"
_EPHEMERIS_HEAD = b"\x02\x20\x00"
PREDICTION_BYTES = 3 + _CLOCK.layout.size + 3 + _SATELLITES * _EPHEMERIS.layout.size
LARGEST_BYTES = _HEADER.size + MAX_PREDICTIONS * PREDICTION_BYTES


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction: the moment from which it holds, and how many satellites it covers."""

    valid_from: datetime
    satellites: int


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """A whole P-GPS file: predictions a `period` apart; `start` is the middle of the first."""

    start: datetime
    period: timedelta
    predictions: tuple[Prediction, ...]

    @property
    def end(self) -> datetime:
        """Return the moment at which the last prediction ends."""
        return self.start + self.period * (len(self.predictions) - 1) + _FIT


def is_pgps(data: bytes) -> bool:
    """Return whether data begin as a P-GPS file does, and not as A-GNSS, which has no such type."""
    return data[:2] == bytes((_SCHEMA, _ARRAY_TYPE))


def parse_pgps(
    data: bytes, *, asked_count: int | None = None, asked_period_min: int | None = None
) -> PredictionFile:
    """Return the predictions of a file. Raises DamagedAssistance with the offset of the damage.

    `asked_count` and `asked_period_min` are what the request named, if it did.
    """
    if len(data) < _HEADER.size:
        raise DamagedAssistance(f"{len(data)} bytes are no P-GPS file: its header has 16")
    schema, array_type, items, count, size, period_min, day, second = _HEADER.unpack_from(data)
    for name, value, expected, offset in (
        ("schema", schema, _SCHEMA, 0),
        ("array type", array_type, _ARRAY_TYPE, 1),
        ("number of items", items, _ITEMS, 2),
        ("prediction size", size, PREDICTION_BYTES, 6),
        ("period", period_min, asked_period_min or period_min, 8),
    ):
        if value != expected:
            raise DamagedAssistance(f"P-GPS {name} {value} at offset {offset}; {expected} is due")
    if not 0 < count <= (asked_count or count) or not period_min > 0:
        raise DamagedAssistance(
            f"{count} predictions of {period_min} minutes at offset 4; "
            f"{asked_count or 'one or more'} were asked for"
        )
    if not 0 <= second < 86400 or day < 0:
        raise DamagedAssistance(f"GPS day {day}, second {second} at offset 10 is no time")
    if len(data) != _HEADER.size + count * PREDICTION_BYTES:
        raise DamagedAssistance(
            f"the P-GPS file has {len(data)} bytes; {count} predictions make "
            f"{_HEADER.size + count * PREDICTION_BYTES}"
        )
    start, period = utc_of(day, second), timedelta(minutes=period_min)
    predictions = tuple(
        _prediction(data, _HEADER.size + index * PREDICTION_BYTES, start + index * period)
        for index in range(count)
    )
    return PredictionFile(start, period, predictions)


def _prediction(data: bytes, offset: int, due: datetime) -> Prediction:
    if data[offset : offset + 3] != _CLOCK_HEAD:
        raise DamagedAssistance(f"no clock element at offset {offset}")
    clock = dict(zip(_CLOCK.fields, _CLOCK.layout.unpack_from(data, offset + 3), strict=True))
    stated = utc_of(clock["gps_day"], clock["time_s"])
    if stated != due:
        raise DamagedAssistance(f"the clock at offset {offset} says {stated}; {due} is due")
    table = offset + 3 + _CLOCK.layout.size
    if data[table : table + 3] != _EPHEMERIS_HEAD:
        raise DamagedAssistance(f"no table of {_SATELLITES} ephemerides at offset {table}")
    step = _EPHEMERIS.layout.size
    covered = 0
    for start in range(table + 3, table + 3 + _SATELLITES * step, step):
        # A satellite without a prediction is all zero but for its number.
        covered += any(data[start + 1 : start + step])
    return Prediction(due - _FIT, covered)


def gps_day_and_second(moment: datetime) -> tuple[int, int]:
    """Return GPS day and second of the day of an aware moment."""
    since = moment - GPS_EPOCH + timedelta(seconds=LEAP_SECONDS)
    return since.days, since.seconds


def utc_of(gps_day: int, second: int) -> datetime:
    """Return the time, in UTC, of a GPS day and a second of it."""
    return GPS_EPOCH + timedelta(days=gps_day, seconds=second - LEAP_SECONDS)
