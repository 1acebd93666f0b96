"""P-GPS is asked for within its bounds, and its link is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.call import Response
from agent.config.project import ProjectSlugs
from agent.errors import BadAnswer, UsageError
from agent.location.pgps import PredictionRequest, RequestPgps
from agent.location.pgps_file import utc_of

PROJECT = ProjectSlugs("acme", "trackers")


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


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"host":1,"path":"x"}', b'{"host":""}', b'{"host":"h","path":""}', b"null"],
)
def test_an_answer_without_a_link_is_refused(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        RequestPgps(PROJECT, PredictionRequest()).parse(Response(200, {}, body))


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": datetime(2026, 1, 1)},  # noqa: DTZ001 - naive on purpose
        {"count": 0},
        {"count": 169},
        {"start": datetime(1980, 1, 5, tzinfo=UTC)},
        {"interval_min": 90},
        {"interval_min": 150},
        {"count": 85},
        {"count": 85, "interval_min": 240},
    ],
)
def test_impossible_predictions_are_not_asked_for(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PredictionRequest(**arguments)


@pytest.mark.parametrize(("interval_min", "most"), [(None, 84), (120, 168), (480, 42)])
def test_of_too_many_predictions_it_is_told_how_many_there_are(
    interval_min: int | None, most: int
) -> None:
    PredictionRequest(most, interval_min)
    if most < 168:  # of more than these none can be asked for, however near they are
        with pytest.raises(UsageError, match=f"minutes apart are {most}$"):
            PredictionRequest(most + 1, interval_min)
