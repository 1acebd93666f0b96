"""A-GNSS is asked for by types and cell, and taken only in the range that was asked for."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from agent.call import Response
from agent.config.project import ProjectSlugs
from agent.errors import BadAnswer, UsageError
from agent.location.agnss import (
    AgnssRequest,
    FetchAgnss,
    FetchAgnssByGet,
    MeasureAgnss,
    ServingCell,
)

PROJECT = ProjectSlugs("acme", "trackers")


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


@pytest.mark.contract("D8.3")
def test_the_deprecated_get_asks_by_types_and_cell_in_a_range() -> None:
    wanted = AgnssRequest((8, 1), ServingCell(1, 1, 2305, 33703681, -97))
    call = FetchAgnssByGet(None, wanted, start=100, size=50)
    request = call.request()
    assert (request.method, request.path) == ("GET", "/v1/location/agnss")
    assert request.query == [
        ("requestType", "custom"), ("customTypes", "1,8"),
        ("mcc", "1"), ("mnc", "1"), ("tac", "2305"), ("eci", "33703681"),
    ]  # fmt: skip
    assert (request.json, request.headers["range"]) == (UNSET, "bytes=100-149")
    assert "POST replaces it" in call.warning
    assert call.in_kit_name
    with pytest.raises(UsageError, match="legacy path alone"):
        FetchAgnssByGet(PROJECT, wanted).request()
    with pytest.raises(UsageError, match="neither a filter nor a mask"):
        FetchAgnssByGet(None, AgnssRequest(mask_degrees=5)).request()


@pytest.mark.contract("D8.2")
@pytest.mark.parametrize(
    ("told", "size"), [("19", 19), (None, None), ("", None), ("-1", None), ("much", None)]
)
def test_the_size_is_what_the_service_states_if_it_states_one(
    told: str | None, size: int | None
) -> None:
    headers = {} if told is None else {"content-length": told}
    assert MeasureAgnss(PROJECT, AgnssRequest()).parse(Response(200, headers, b"")) == size


@pytest.mark.contract("D8.2")
@pytest.mark.parametrize("types", [(), (0,), (18,), (1, 99)])
def test_types_that_there_are_not_are_refused_before_they_are_sent(types: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="types are 1 to 17"):
        AgnssRequest(types)


def test_type_8_without_a_cell_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UsageError, match="serving cell"):
        AgnssRequest((8,))
    with pytest.raises(UsageError, match="serving cell"):
        AgnssRequest(filtered=True)


def test_the_mask_is_0_to_90_degrees() -> None:
    for degrees in (0, 90):
        assert AgnssRequest(mask_degrees=degrees).fields()["mask"] == degrees
    for degrees in (-1, 91):
        with pytest.raises(UsageError, match="0 to 90 degrees"):
            AgnssRequest(mask_degrees=degrees)


@pytest.mark.contract("D8.2")
def test_a_piece_must_be_the_one_that_was_asked_for() -> None:
    call = FetchAgnss(PROJECT, AgnssRequest(), start=4, size=4)
    good = call.parse(Response(206, {"content-range": "bytes 4-7/10"}, b"abcd"))
    assert (good.start, good.data, good.total) == (4, b"abcd", 10)
    assert call.parse(Response(206, {"content-range": "Bytes 4-7/10"}, b"abcd")) == good
    whole = call.parse(Response(200, {}, b"0123456789"))
    assert (whole.start, whole.total) == (0, 10)
    for told in ("", "bytes 0-3/10", "bytes 4-8/10", "bytes 4-7/*", "bytes 4-7/99999999"):
        with pytest.raises(BadAnswer):
            call.parse(Response(206, {"content-range": told}, b"abcd"))
    with pytest.raises(BadAnswer, match="JSON"):
        call.parse(Response(200, {"content-type": "application/json"}, b'{"code":40400}'))
