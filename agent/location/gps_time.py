"""GPS time: days since 1980-01-06 and seconds of the day, ahead of UTC by the leap seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

GPS_EPOCH = datetime(1980, 1, 6, tzinfo=UTC)
LEAP_SECONDS = 18
"""Since 2017-01-01; no further one is announced."""


def gps_day_and_second(moment: datetime) -> tuple[int, int]:
    """Return GPS day and second of the day of an aware moment."""
    since = moment - GPS_EPOCH + timedelta(seconds=LEAP_SECONDS)
    return since.days, since.seconds


def utc_of(gps_day: int, second: int) -> datetime:
    """Return the moment, in UTC, of a GPS day and a second of it."""
    return GPS_EPOCH + timedelta(days=gps_day, seconds=second - LEAP_SECONDS)
