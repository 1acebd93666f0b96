"""The page of a list: an answer that is none is told apart, whatever is listed."""

from __future__ import annotations

import json

import pytest

from agent.call import Call, Response
from agent.cloud.conventions import if_match, path_segment
from agent.cloud.device_reads import ListDevices, TransformDevices
from agent.cloud.messages import ListMessages
from agent.errors import BadAnswer, UsageError


@pytest.mark.parametrize("call", [ListDevices(), TransformDevices("id"), ListMessages()])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([], "Expected `object`"),
        ({"items": {}}, r"\$.items"),
        ({"items": [], "total": "three"}, r"\$.total"),
        ({"items": [], "total": True}, r"\$.total"),
        ({"items": [], "pageNextToken": 7}, r"\$.pageNextToken"),
    ],
)
def test_a_page_that_is_none_is_a_bad_answer(
    call: Call[object], answer: object, reason: str
) -> None:
    with pytest.raises(BadAnswer, match=reason):
        call.parse(Response(200, {}, json.dumps(answer).encode()))


@pytest.mark.contract("D4.1")
@pytest.mark.parametrize("token", [None, ""])
def test_a_page_with_no_next_one_is_the_last(token: str | None) -> None:
    answer = json.dumps({"items": [], "pageNextToken": token}).encode()
    assert ListDevices().parse(Response(200, {}, answer)).next_token is None


@pytest.mark.parametrize("value", ["", ".", "..", "a\nb"])
def test_what_would_lead_to_another_path_is_no_segment_of_one(value: str) -> None:
    assert path_segment("a:b/c%", "a device id") == "a:b%2Fc%25"
    with pytest.raises(UsageError, match="cannot be a device id"):
        path_segment(value, "a device id")


def test_a_version_of_blanks_is_none() -> None:
    assert if_match("a b") == {"if-match": "a b"}
    with pytest.raises(UsageError, match="cannot be a version"):
        if_match("  ")
