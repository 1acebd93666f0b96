"""P-GPS files: listed with their times, or refused with the offset."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.location.agnss_file import DamagedAssistance
from agent.location.pgps_file import gps_day_and_second, parse_pgps, utc_of


def predictions(count: int, *, day: int = 15187, second: int = 0, period_min: int = 240) -> bytes:
    data = struct.pack("<BBHHHHhi", 1, 10, 1, count, 2006, period_min, day, second)
    for index in range(count):
        extra, rest = divmod(second + index * period_min * 60, 86400)
        data += struct.pack("<BHHIHI4x", 7, 1, day + extra, rest, 0, 0) + struct.pack("<BH", 2, 32)
        for satellite in range(32):
            data += bytes([satellite + 1]) + (bytes(61) if satellite > 29 else b"\x01" * 61)
    return data


@pytest.mark.contract("D8.2")
def test_a_prediction_file_is_listed_with_its_times() -> None:
    file = parse_pgps(predictions(42), asked_count=42, asked_period_min=240)
    assert len(predictions(42)) == 84268
    assert file.start == utc_of(15187, 0) == datetime(2021, 8, 4, 23, 59, 42, tzinfo=UTC)
    assert file.predictions[0].valid_from == file.start - timedelta(hours=2)
    assert file.end == file.start + timedelta(days=7, hours=-2)
    assert {prediction.satellites for prediction in file.predictions} == {30}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no P-GPS file"),
        (predictions(2)[:-1], "has 4027 bytes"),
        (b"\x02" + predictions(2)[1:], "schema 2 at offset 0"),
        (predictions(3), "3 predictions"),
        (predictions(2, period_min=120), "period 120 at offset 8; 240"),
        (predictions(2, second=86400), "second 86400 at offset 10"),
        (predictions(2)[:16] + b"\x08" + predictions(2)[17:], "no clock element at offset 16"),
        (predictions(2)[:19] + b"\x00\x00" + predictions(2)[21:], "clock at offset 16 says"),
        (predictions(2)[:35] + b"\x03" + predictions(2)[36:], "ephemerides at offset 35"),
    ],
)
def test_a_damaged_prediction_file_is_refused_with_the_offset(data: bytes, words: str) -> None:
    with pytest.raises(DamagedAssistance, match=words):
        parse_pgps(data, asked_count=2, asked_period_min=240)


def test_a_gps_day_is_counted_from_1980_with_leap_seconds() -> None:
    assert gps_day_and_second(datetime(2021, 8, 5, tzinfo=UTC)) == (15187, 18)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_gps_time_goes_there_and_back(moment: datetime) -> None:
    assert utc_of(*gps_day_and_second(moment)) == moment.replace(microsecond=0)
