"""The page of a list: an answer that is none is told apart, whatever is listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.call import Call, Response
from agent.cloud.device_reads import ListDevices, TransformDevices
from agent.cloud.messages import ListMessages
from agent.errors import BadAnswer


@pytest.mark.parametrize("call", [ListDevices(), TransformDevices("id"), ListMessages()])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([], "no `items`"),
        ({"items": {}}, "no `items`"),
        ({"items": [], "total": "3"}, "`total` is no number"),
        ({"items": [], "total": True}, "`total` is no number"),
        ({"items": [], "pageNextToken": 7}, "`pageNextToken` is no text"),
    ],
)
def test_a_page_that_is_none_is_a_bad_answer(call: Call[Any], answer: Any, reason: str) -> None:
    with pytest.raises(BadAnswer, match=reason):
        call.parse(Response(200, {}, json.dumps(answer).encode()))
