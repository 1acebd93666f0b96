"""What a location call sends, which credential it takes, and what a refusal means."""

from __future__ import annotations

import pytest

from agent.call import Response, Scheme
from agent.config.project import ProjectSlugs
from agent.errors import BadAnswer, UsageError
from agent.location.calls import GroundFix, LocateCell, LocateWifi, LocationCall
from agent.location.position import Position

PROJECT = ProjectSlugs("acme", "trackers")
POINTS = ({"macAddress": "40:01:7a:00:00:01", "signalStrength": -60},)
CELLS = ({"mcc": 1, "mnc": 1, "eci": 33703681, "tac": 2305},)


@pytest.mark.contract("D8.1", "D8.2", "D8.5")
@pytest.mark.parametrize(
    ("call", "endpoint", "body"),
    [
        (LocateWifi(PROJECT, access_points=POINTS), "wifi", {"accessPoints": list(POINTS)}),
        (LocateCell(PROJECT, cells=CELLS), "cell", {"lte": list(CELLS)}),
        (LocateCell(PROJECT, cells=CELLS, radio="nbiot"), "cell", {"nbiot": list(CELLS)}),
        (GroundFix(PROJECT, cells=CELLS), "ground-fix", {"lte": list(CELLS)}),
        (
            GroundFix(PROJECT, cells=CELLS, access_points=POINTS),
            "ground-fix",
            {"lte": list(CELLS), "wifi": {"accessPoints": list(POINTS)}},
        ),
        (
            GroundFix(PROJECT, access_points=POINTS, wifi_as_array=True),
            "ground-fix",
            {"wifi": list(POINTS)},
        ),
    ],
)
def test_each_call_goes_to_its_endpoint_with_what_is_known(
    call: LocationCall, endpoint: str, body: object
) -> None:
    request = call.request()
    assert request.method == "POST"
    assert request.path == f"/v1/organizations/acme/projects/trackers/location/{endpoint}"
    assert request.json == body
    assert request.query == []


@pytest.mark.contract("D8.3", "D8.5", "D10.7")
def test_each_credential_goes_to_its_own_form_only() -> None:
    current, legacy = LocateWifi(PROJECT), LocateWifi(None)
    assert current.schemes == (Scheme.ORGANIZATION_TOKEN,)
    assert Scheme.ORGANIZATION_TOKEN not in legacy.schemes
    assert {Scheme.SERVICE_TOKEN, Scheme.EVALUATION_TOKEN} <= set(legacy.schemes)
    assert legacy.schemes[-1] is Scheme.DEVICE_JWT, "a kit always has one: it is the last resort"
    assert legacy.request().path == "/v1/location/wifi"


def test_an_answer_without_a_position_is_right_only_where_none_was_asked_for() -> None:
    empty = Response(200, {}, b"")
    assert LocateCell(PROJECT, do_reply=False).parse(empty) is None
    with pytest.raises(BadAnswer):
        LocateCell(PROJECT).parse(empty)


@pytest.mark.contract("D8.5")
def test_switches_and_the_device_are_sent_as_the_service_names_them() -> None:
    call = LocateCell(PROJECT, do_reply=False, high_confidence=True, fallback=False, device_id="d1")
    assert call.request().query == [("doReply", "false"), ("hiConf", "true"), ("fallback", "false")]
    assert call.request().headers == {"x-custom-device-id": "d1"}
    assert call.parse(Response(200, {}, b"")) is None
    assert call.parse(Response(200, {}, b'{"lat":1,"lon":2}')) == Position(1.0, 2.0)


@pytest.mark.contract("D2.2", "D8.2")
@pytest.mark.parametrize("device_id", ["greenhouse north", "DE:AD:BE:EF:00:01", "a/b"])
def test_an_id_that_a_header_takes_names_the_device(device_id: str) -> None:
    call = LocateCell(PROJECT, device_id=device_id, heard_by_kit=False)
    assert call.in_kit_name
    assert call.request().headers == {"x-custom-device-id": device_id}


@pytest.mark.contract("D2.2", "D8.2")
@pytest.mark.parametrize("device_id", ["", "drivhus nørd", "a\nb", "\x7f"])
def test_an_id_that_no_header_takes_is_left_out_and_still_in_a_kit_s_name(device_id: str) -> None:
    call = LocateCell(PROJECT, device_id=device_id)
    assert call.request().headers == {}
    assert call.in_kit_name


@pytest.mark.contract("D8.1", "D8.2")
def test_coarse_results_are_refused_of_the_calls_that_have_them() -> None:
    for call in (LocateCell(PROJECT, fallback=False), GroundFix(PROJECT, fallback=False)):
        assert call.request().query == [("fallback", "false")]
    assert LocateWifi(PROJECT, fallback=False).request().query == []


@pytest.mark.contract("D8.4")
def test_a_missing_slug_is_told_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="slugs of an organization and a project"):
        LocateWifi(ProjectSlugs("acme", "")).request()


@pytest.mark.contract("D8.4")
@pytest.mark.parametrize(
    ("project", "status", "code", "words"),
    [
        (PROJECT, 401, None, 'slugs "acme" and "trackers"'),
        (PROJECT, 403, None, "switch location services on for this project"),
        (PROJECT, 404, 40499, "no position is known"),
        (PROJECT, 404, None, "no position was found, or the path is wrong"),
        (None, 404, None, "legacy path is gone"),
        (None, 404, 40420, "legacy path is gone"),
        (None, 401, None, ""),
        (PROJECT, 500, None, ""),
    ],
)
def test_a_refusal_says_which_causes_it_can_have(
    project: ProjectSlugs | None, status: int, code: int | None, words: str
) -> None:
    assert words in LocateWifi(project).advice(status, code)
