"""A request is checked against the declaration of its operation."""

from __future__ import annotations

import pytest
from starlette.responses import Response

from agent.standin.core.operation import Parameter
from agent.standin.observability.access import Access
from agent.standin.observability.operations import PROJECT_PATH, RequestContext, declare
from tests.support.cloud.observability import an_event, error_of, push_events, with_token
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("O1.1")
async def test_a_slug_of_a_path_is_held_to_the_rule(standin: StandIn) -> None:
    caller = with_token(standin)
    assert error_of(await caller("GET", "~/devices/a%20b"))["http_code"] == 400
    assert error_of(await caller("GET", "/api/v0/organizations/a.b/projects"))["http_code"] == 400
    assert error_of(await caller("GET", "~/devices/never-seen"))["http_code"] == 404


@pytest.mark.contract("O1.5")
async def test_errors_are_json_too(standin: StandIn) -> None:
    caller = with_token(standin)
    for method, path in (
        ("GET", "/api/v0/nowhere"), ("GET", "/api/v0/organizations/nobody/projects"),
        ("TRACE", "/api/v0/organizations"), ("GET", "/auth/nothing"),
    ):  # fmt: skip
        assert error_of(await caller(method, path))["message"]
    wrong = await caller("POST", "~/devices", content=b"{", headers={"Content-Type": "text/plain"})
    assert error_of(wrong)["http_code"] == 415
    for body in (b"{", b"[" * 100_000, b'{"a":1e999}', b"\xff", b'{"a":' * 200 + b"1" + b"}" * 200):
        answer = await caller(
            "POST", "~/devices", content=body, headers={"Content-Type": "application/json"}
        )
        assert error_of(answer)["http_code"] == 400


@pytest.mark.contract("O3.1")
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_body_is_to_be_declared_as_json(standin: StandIn, method: str) -> None:
    await push_events(standin, an_event("kit-1"))
    path = "~/devices" + ("/kit-1" if method == "PATCH" else "")
    for media in ("text/plain", "application/x-www-form-urlencoded"):
        answer = await with_token(standin)(
            method, path, content=b"{}", headers={"Content-Type": media}
        )
        assert error_of(answer)["http_code"] == 415
    good = await with_token(standin)(
        method,
        path,
        content=b'{"device_serial":"x","hardware_version":"y"}',
        headers={"Content-Type": "application/json; charset=utf-8"},
    )
    assert good.status_code in {200, 201}


def test_a_declaration_is_completed_by_its_path_its_access_and_its_body() -> None:
    async def handler(context: RequestContext) -> Response:
        raise NotImplementedError

    served = declare(
        f"PUT {PROJECT_PATH}/x", "PutX", "", handler, tag="x", answers={},
        parameters=(Parameter(name="y", schema={}),), body={}, refusals=(409,),
    )  # fmt: skip
    operation = served.operation
    assert [one.name for one in operation.parameters] == ["organization_slug", "project_slug", "y"]
    assert operation.security == ("Basic",)
    assert {*operation.refusals} == {400, 401, 403, 404, 409, 413, 415}
    pushed = declare(
        "PUT /x", "PutX", "", handler,
        tag="x", answers={}, access=Access.PROJECT_KEY, refusals=(409,),
    )  # fmt: skip
    operation = pushed.operation
    assert (operation.parameters, operation.security) == ((), ("ProjectKey",))
    assert {*operation.refusals} == {403, 409}
    assert operation.description == "Accepts the project key."
