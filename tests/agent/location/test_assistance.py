"""Assistance files: read whole, or refused with the element and the offset."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.call import Response
from agent.errors import BadAnswer, UsageError
from agent.location.agnss import (
    AgnssRequest,
    FetchAgnss,
    MeasureAgnss,
    ServingCell,
)
from agent.location.agnss_file import ELEMENTS, DamagedAssistance, parse_agnss
from agent.location.calls import ProjectSlugs
from agent.location.pgps import PredictionRequest, RequestPgps
from agent.location.pgps_file import gps_day_and_second, parse_pgps, utc_of

PROJECT = ProjectSlugs("acme", "trackers")


def block(number: int, count: int = 1) -> bytes:
    return struct.pack("<BH", number, count) + bytes(count * ELEMENTS[number].layout.size)


def predictions(count: int, *, day: int = 15187, second: int = 0, period_min: int = 240) -> bytes:
    data = struct.pack("<BBHHHHhi", 1, 10, 1, count, 2006, period_min, day, second)
    for index in range(count):
        extra, rest = divmod(second + index * period_min * 60, 86400)
        data += struct.pack("<BHHIHI4x", 7, 1, day + extra, rest, 0, 0) + struct.pack("<BH", 2, 32)
        for satellite in range(32):
            data += bytes([satellite + 1]) + (bytes(61) if satellite > 29 else b"\x01" * 61)
    return data


# The sizes are those of the documented elements.
@pytest.mark.contract("D8.2")
@pytest.mark.parametrize(
    ("number", "size"),
    [(1, 14), (2, 62), (3, 31), (4, 8), (5, 8), (6, 4), (7, 16), (8, 15), (9, 4), (11, 31),
     (12, 62), (13, 4), (14, 24), (15, 61), (16, 8), (17, 8)],
)  # fmt: skip
def test_each_element_has_its_documented_size(number: int, size: int) -> None:
    assert ELEMENTS[number].layout.size == size
    values = ELEMENTS[number].layout.unpack(bytes(size))
    assert len(values) == len(ELEMENTS[number].fields)


@pytest.mark.contract("D8.2")
def test_blocks_in_any_order_are_read() -> None:
    blocks = parse_agnss(b"\x01" + block(3, 2) + block(9) + block(6, 32) + block(7))
    assert [(found.element.number, len(found.values)) for found in blocks] == [
        (3, 2), (9, 1), (6, 32), (7, 1),
    ]  # fmt: skip
    assert blocks[1].values == ({"unhealthy_mask": 0},)


def test_no_block_at_all_is_legal() -> None:
    assert parse_agnss(b"\x01") == ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\x02", "schema 2 at offset 0"),
        (b"\x01" + block(1) + b"\x09", "offset 18"),
        (b"\x01\x0a\x01\x00", "unknown A-GNSS element 10 at offset 1"),
        (b"\x01" + block(1) + block(2)[:-1], "element 2 .* at offset 18 needs 62 bytes; 61"),
        (b"\x01" + block(1, 2), "2 elements of type 1"),
        (b"\x01" + block(2, 33), "33 elements of type 2"),
        (b'{"message":"no"}', "schema 123"),
    ],
)
def test_damage_is_named_with_element_and_offset(data: bytes, words: str) -> None:
    with pytest.raises(DamagedAssistance, match=words):
        parse_agnss(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_blocks_or_are_refused(data: bytes) -> None:
    try:
        blocks = parse_agnss(data)
    except DamagedAssistance:
        return
    assert 1 + sum(3 + len(b.values) * b.element.layout.size for b in blocks) == len(data)


@pytest.mark.contract("D8.2")
def test_a_prediction_file_is_listed_with_its_times() -> None:
    file = parse_pgps(predictions(42), asked_count=42, asked_period_min=240)
    assert len(predictions(42)) == 84268
    assert file.start == utc_of(15187, 0) == datetime(2021, 8, 4, 23, 59, 42, tzinfo=UTC)
    assert file.end - file.start == timedelta(days=7)
    assert {prediction.satellites for prediction in file.predictions} == {30}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no P-GPS file"),
        (predictions(2)[:-1], "has 4027 bytes"),
        (b"\x02" + predictions(2)[1:], "schema 2 at offset 0"),
        (predictions(3), "3 predictions"),
        (predictions(2, period_min=120), "period 120 at offset 8; 240"),
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


@pytest.mark.contract("D8.2")
def test_agnss_is_asked_for_by_types_and_cell_in_a_range() -> None:
    wanted = AgnssRequest(
        (8, 1), ServingCell(1, 1, 2305, 33703681, -97), filtered=True, mask_degrees=5
    )
    request = FetchAgnss(PROJECT, wanted, start=100, size=50).request()
    assert request.method == "POST"
    assert request.path == "/v1/organizations/acme/projects/trackers/location/agnss"
    assert request.headers["range"] == "bytes=100-149"
    assert request.json == {
        "types": [1, 8], "mcc": 1, "mnc": 1, "tac": 2305, "eci": 33703681, "rsrp": -97,
        "filtered": True, "mask": 5,
    }  # fmt: skip
    head = MeasureAgnss(PROJECT, AgnssRequest((1, 2))).request()
    assert (head.method, head.query) == ("HEAD", [("types", "1"), ("types", "2")])


def test_type_8_without_a_cell_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UsageError, match="serving cell"):
        AgnssRequest((8,))


def test_a_piece_must_be_the_one_that_was_asked_for() -> None:
    call = FetchAgnss(PROJECT, AgnssRequest(), start=4, size=4)
    good = call.parse(Response(206, {"content-range": "bytes 4-7/10"}, b"abcd"))
    assert (good.start, good.data, good.total) == (4, b"abcd", 10)
    whole = call.parse(Response(200, {}, b"0123456789"))
    assert (whole.start, whole.total) == (0, 10)
    for told in ("", "bytes 0-3/10", "bytes 4-8/10", "bytes 4-7/*", "bytes 4-7/99999999"):
        with pytest.raises(BadAnswer):
            call.parse(Response(206, {"content-range": told}, b"abcd"))
    with pytest.raises(BadAnswer, match="JSON"):
        call.parse(Response(200, {"content-type": "application/json"}, b'{"code":40400}'))


@pytest.mark.contract("D8.2")
@pytest.mark.parametrize("host", ["pgps.example.org", "https://pgps.example.org"])
def test_predictions_are_asked_for_and_linked_to_another_host(host: str) -> None:
    call = RequestPgps(PROJECT, PredictionRequest(42, 240, utc_of(15187, 0)))
    assert call.request().query == [
        ("predictionCount", "42"), ("predictionIntervalMinutes", "240"), ("startGpsDay", "15187"),
        ("startGpsTimeOfDaySeconds", "0"),
    ]  # fmt: skip
    answer = f'{{"host":"{host}","path":"/public/a.bin"}}'.encode()
    link = call.parse(Response(200, {}, answer))
    assert link.url == "https://pgps.example.org/public/a.bin"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"host":1,"path":"x"}', b'{"host":""}', b"null"])
def test_an_answer_without_a_link_is_refused(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        RequestPgps(PROJECT, PredictionRequest()).parse(Response(200, {}, body))


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": datetime(2026, 1, 1)},  # noqa: DTZ001 - naive on purpose
        {"count": 0},
        {"count": 169},
        {"interval_min": 90},
        {"count": 85, "interval_min": 240},
    ],
)
def test_impossible_predictions_are_not_asked_for(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PredictionRequest(**arguments)
