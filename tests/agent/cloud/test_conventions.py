"""The page of a list: an answer that is none is told apart, whatever is listed."""

from __future__ import annotations

import json

import pytest

from agent.call import Call, Response
from agent.cloud.device_reads import ListDevices, TransformDevices
from agent.cloud.messages import ListMessages
from agent.errors import BadAnswer


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
