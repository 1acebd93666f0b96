"""The project key and the user API key, as the service answers."""

from __future__ import annotations

import pytest

from agent.call import Response
from agent.errors import BadAnswer
from agent.observability import Scope
from agent.observability.api.keys import (
    CycleProjectKey,
    CycleUserKey,
    DeleteUserKey,
    FetchProjectKey,
    FetchUserKey,
)

SCOPE = Scope("acme", "tracker")


def answer(content: bytes, status: int = 200) -> Response:
    return Response(status, {"content-type": "application/json"}, content)


@pytest.mark.contract("O5.5")
def test_each_key_has_its_method_and_path():
    calls = [
        FetchProjectKey(SCOPE),
        CycleProjectKey(SCOPE),
        FetchUserKey(),
        CycleUserKey(),
        DeleteUserKey(),
    ]
    project = "/api/v0/organizations/acme/projects/tracker/api_key"
    assert [(call.request().method, call.request().path) for call in calls] == [
        ("GET", project),
        ("POST", project),
        ("GET", "/auth/api_key"),
        ("POST", "/auth/api_key"),
        ("DELETE", "/auth/api_key"),
    ]


@pytest.mark.parametrize("content", [b'{"data": {"api_key": "k1"}}', b'{"api_key": "k1"}'])
def test_a_key_is_read_in_data_or_bare(content):
    assert FetchProjectKey(SCOPE).parse(answer(content)) == "k1"
    assert CycleUserKey().parse(answer(content)).reveal() == "k1"


def test_a_user_without_a_key_has_none():
    assert FetchUserKey().parse(answer(b"{}", 404)) is None
    assert FetchUserKey().parse(answer(b'{"api_key": ""}')) is None


@pytest.mark.parametrize("content", [b"{}", b"[]", b'{"api_key": ""}', b'{"api_key": 7}'])
def test_an_answer_without_a_key_is_a_bad_answer(content):
    with pytest.raises(BadAnswer):
        FetchProjectKey(SCOPE).parse(answer(content))
    with pytest.raises(BadAnswer):
        CycleUserKey().parse(answer(content))


def test_only_a_refusal_for_want_of_a_role_names_the_roles():
    assert "project managers" in CycleProjectKey(SCOPE).advice(403, None)
    assert CycleProjectKey(SCOPE).advice(401, None) == ""
