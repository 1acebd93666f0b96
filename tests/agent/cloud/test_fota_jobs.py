from __future__ import annotations

import pytest

from agent.call import Response, Scheme
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.errors import BadAnswer, NotFound, RateLimited

FETCH = FetchCurrentJob("kit/1")


@pytest.mark.contract("D9.2")
def test_the_pending_job_is_asked_for_with_either_scheme() -> None:
    request = FETCH.request()
    assert (request.method, request.path) == ("GET", "/v1/fota-job-executions/kit%2F1/current")
    assert FETCH.schemes[:2] == (Scheme.API_KEY, Scheme.DEVICE_JWT)


@pytest.mark.contract("D9.2")
@pytest.mark.parametrize(
    "body", [b'{"code":40499,"message":"none"}', b'["none"]', b"{}", b'"none"', b"null"]
)
def test_no_job_is_an_answer(body: bytes) -> None:
    assert FETCH.parse(Response(404, {}, body)) is None


@pytest.mark.parametrize("body", [b"", b"<html>404</html>", b"404 page not found", b"\xff{}"])
def test_a_404_that_is_no_json_is_not_the_services_and_no_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer, match="expected JSON"):
        FETCH.parse(Response(404, {"content-type": "text/html"}, body))


def test_an_unknown_device_is_told_apart_from_no_job() -> None:
    with pytest.raises(NotFound, match="kit/1"):
        FETCH.parse(Response(404, {}, b'{"code":40410,"message":"unknown"}'))


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b"[" * 5000])
def test_what_is_no_job_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        FETCH.parse(Response(200, {}, body))


@pytest.mark.contract("D9.2")
@pytest.mark.parametrize("status", [400, 404, 409, 410, 412, 422])
def test_a_report_is_refused_by_the_services_own_answer_alone(status: int) -> None:
    call = UpdateJob("kit", "job-1", "FAILED", "why")
    assert status in call.accepts
    for body in (b'{"code":40410,"message":"no such job"}', b'["no such job"]'):
        with pytest.raises(NotFound, match="job-1"):
            call.parse(Response(status, {}, body))
    for body in (b"", b"<html>404</html>", b"404 page not found", b"\xff{}"):
        with pytest.raises(BadAnswer, match="expected JSON"):
            call.parse(Response(status, {"content-type": "text/html"}, body))


def test_a_plan_that_is_used_up_is_no_word_on_the_job() -> None:
    with pytest.raises(RateLimited, match="job-1 later"):
        UpdateJob("kit", "job-1", "SUCCEEDED").parse(Response(400, {}, b'{"code":40005}'))


@pytest.mark.parametrize("status", [401, 403, 405, 408, 413, 415, 418, 425, 429, 451])
def test_a_status_that_is_about_no_job_is_no_answer_to_a_report(status: int) -> None:
    assert status not in UpdateJob("kit", "job-1", "FAILED").accepts


def test_a_report_that_is_taken_has_no_answer() -> None:
    assert UpdateJob("kit", "job-1", "FAILED").parse(Response(202, {}, b"")) is None


def test_a_report_names_state_and_detail() -> None:
    request = UpdateJob("kit", "job-1", "FAILED", "why").request()
    assert (request.method, request.path) == ("PATCH", "/v1/fota-job-executions/kit/job-1")
    assert request.json == {"status": "FAILED", "details": "why"}
