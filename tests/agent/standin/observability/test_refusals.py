"""Every refusal has the published body, with code and type of its status."""

from __future__ import annotations

import pytest

from agent.standin.core.schema import check
from agent.standin.observability.refusals import (
    ERROR_SCHEMA,
    ObservabilityRefused,
    conflict,
    forbidden,
    invalid,
    invalid_fields,
    not_found,
    too_many_requests,
    unauthorized,
    unknown_reference,
)


@pytest.mark.contract("O1.5")
@pytest.mark.parametrize(
    ("refused", "status", "code"),
    [
        (invalid("wrong"), 400, 1000),
        (unauthorized("who?"), 401, 1001),
        (forbidden("no"), 403, 1001),
        (not_found("device"), 404, 1002),
        (conflict("exists"), 409, 1007),
        (too_many_requests("slower", 7), 429, 1004),
        (ObservabilityRefused(418, "odd"), 418, 1418),
    ],
)
def test_a_refusal_has_the_code_of_its_status(
    refused: ObservabilityRefused, status: int, code: int
) -> None:
    body = refused.body()
    assert not check(body, ERROR_SCHEMA)
    assert (body["error"]["http_code"], body["error"]["code"]) == (status, code)
    assert body["error"]["message"] == refused.message


def test_texts_by_field_take_the_place_of_the_message() -> None:
    body = invalid_fields({"serial": ["too long"]}).body()
    assert not check(body, ERROR_SCHEMA)
    assert body["error"]["message"] == {"serial": ["too long"]}
    named = unknown_reference("cohort", "This cohort").body()["error"]
    assert named["message"] == {"cohort": ["This cohort does not exist."]}


def test_a_caller_is_told_how_to_authenticate_and_when_to_return() -> None:
    assert unauthorized("who?").headers["WWW-Authenticate"].startswith("Basic ")
    assert too_many_requests("slower", 7).headers["Retry-After"] == "7"
