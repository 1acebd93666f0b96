from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.call import Call, Response
from agent.errors import BadAnswer


class Thing(msgspec.Struct):
    name: str


def answer(content: bytes, content_type: str = "") -> Response:
    headers = {"content-type": content_type} if content_type else {}
    return Response(200, headers, content)


def test_an_answer_is_decoded_as_the_type_that_is_asked_for():
    assert answer(b'{"name": "x"}').decode(Thing) == Thing("x")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "an empty body"),
        (b"{", "1 byte of no declared type"),
        (b'{"name": 1}', r"another shape.*\$\.name"),
        (b'{"name": ' + b"[" * 100_000, "another shape"),
    ],
    ids=["nothing", "cut", "shape", "nested"],
)
def test_what_came_instead_is_named(content: bytes, named: str):
    with pytest.raises(BadAnswer, match=named) as caught:
        answer(content).decode(Thing)
    assert caught.value.status == 200


@pytest.mark.parametrize(
    ("content", "named"), [(b"[" * 100_000, "100000 bytes"), (b'"\xff"', "3 bytes")]
)
def test_plain_json_may_be_neither_nested_without_end_nor_other_than_utf_8(
    content: bytes, named: str
):
    with pytest.raises(BadAnswer, match=named):
        answer(content).json()


def test_an_empty_answer_is_no_page_whatever_type_a_server_gives_it():
    answer(b"", "text/html; charset=utf-8").check_accepted()


@pytest.mark.parametrize("content", [b"OK", b'{"status": 202}', b"\0\1"])
def test_a_push_may_be_answered_with_anything_but_a_page(content: bytes):
    answer(b"").check_accepted()
    answer(content).check_accepted()
    with pytest.raises(BadAnswer) as caught:
        answer(content, "text/html; charset=utf-8").check_accepted()
    assert "log-in" in caught.value.hint
    with pytest.raises(BadAnswer):
        answer(b" \n<html>" + content).check_accepted()


def test_a_page_in_the_place_of_json_is_told_with_what_it_may_be():
    with pytest.raises(BadAnswer) as caught:
        answer(b"<html>log in", "text/html").json()
    assert "log-in" in caught.value.hint
    with pytest.raises(BadAnswer) as caught:
        answer(b"{", "application/json").json()
    assert caught.value.hint == ""


@given(st.binary(max_size=100))
def test_any_body_is_json_or_a_bad_answer(content: bytes):
    try:
        value = answer(content).json()
    except BadAnswer:
        return
    assert msgspec.json.decode(msgspec.json.encode(value)) == value


def test_a_call_takes_no_credential_and_may_be_repeated_unless_it_says_otherwise():
    call: Call[None] = Call()
    assert (call.schemes, call.repeatable, call.follows) == ((), True, False)
    assert (call.serves(), call.advice(401, None)) == ("", "")
