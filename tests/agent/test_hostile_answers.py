"""Whatever a service answers, a call ends in a value or in one of our errors."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.auth.modem_jwt import check_claims
from agent.call import Call, Response
from agent.cloud import Device
from agent.errors import AgentError, CredentialError
from agent.http.refusals import MAX_TEXT, service_message
from at.protocol.errors import ParseError
from at.tokens.jwt import read_jwt
from tests.support.cloud.every_call import CALLS

NAMES = """
id name type tags state firmware supports $meta version createdAt updatedAt items total
pageNextToken data paging item_count total_count page page_count per_page characteristics
value properties descriptors reported statusConnections bulkOpsRequestId status token
api_key code message error errors openapi paths lat lon uncertainty jobId jobDocument team
plan role uuid path deviceId receivedAt errorSummaryUrl
"""
WORDS = st.sampled_from(NAMES.split())
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02", "3.1.0", "SUCCEEDED", "QUEUED"])
)
ANSWERS = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=400)
@given(call=st.sampled_from(CALLS), answer=ANSWERS, status=st.sampled_from([200, 202, 204, 404]))
def test_any_json_is_a_value_or_an_error_of_ours(call: Call[Any], answer: Any, status: int) -> None:
    with contextlib.suppress(AgentError):
        call.parse(Response(status, {}, json.dumps(answer).encode()))


@settings(max_examples=200)
@given(call=st.sampled_from(CALLS), content=st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error_of_ours(call: Call[Any], content: bytes) -> None:
    with contextlib.suppress(AgentError):
        call.parse(Response(200, {}, content))


@settings(max_examples=200)
@given(raw=ANSWERS)
def test_any_device_is_read_or_refused(raw: Any) -> None:
    with contextlib.suppress(AgentError):
        device = Device.of(raw)
        assert device.services is not None
        assert device.connected_ids is not None


@settings(max_examples=300)
@given(content=st.binary(max_size=200) | ANSWERS.map(lambda value: json.dumps(value).encode()))
def test_the_words_of_any_refusal_are_short(content: bytes) -> None:
    code, text = service_message(Response(400, {}, content))
    assert code is None or isinstance(code, int)
    assert len(text) <= MAX_TEXT


@settings(max_examples=300)
@given(
    token=st.text(max_size=80)
    | st.lists(st.text(max_size=20), min_size=3, max_size=3).map(".".join)
)
def test_any_token_is_read_or_refused(token: str) -> None:
    with contextlib.suppress(CredentialError, ParseError):
        check_claims(read_jwt(token), now=0)
