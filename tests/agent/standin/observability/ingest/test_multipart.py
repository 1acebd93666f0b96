"""Multipart bodies as the clients in the field write them, and as anything else does."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.observability.ingest.multipart import BadMultipart, boundary_of, split_parts


@given(contents=st.lists(st.binary(max_size=60), min_size=1, max_size=6), line=st.booleans())
def test_parts_come_back_whatever_they_hold(contents: list[bytes], line: bool) -> None:
    end = b"\r\n" if line else b"\n"
    boundary = b"a-boundary-that-no-part-holds"
    body = b"preamble" + end
    for content in contents:
        body += b"--" + boundary + end + b"Content-Length: 999" + end + end + content + end
    body += b"--" + boundary + b"--" + end + b"epilogue"
    assert [part.content for part in split_parts(body, boundary)] == [
        # Where lines end with LF alone, a CR before the boundary cannot be told from the line end.
        content.removesuffix(b"\r") if not line else content
        for content in contents
    ]


@given(body=st.binary(max_size=200))
def test_any_bytes_are_parts_or_named(body: bytes) -> None:
    with contextlib.suppress(BadMultipart):
        split_parts(body, b"b")


@pytest.mark.parametrize(
    ("header", "boundary"),
    [("multipart/mixed; boundary=b", b"b"), ('Multipart/Mixed; boundary="b c"', b"b c"),
     ("multipart/mixed; charset=x; BOUNDARY=b", b"b")],
)  # fmt: skip
def test_the_boundary_is_read_quoted_or_not(header: str, boundary: bytes) -> None:
    assert boundary_of(header) == boundary


@pytest.mark.parametrize(
    "header", ["multipart/mixed", "multipart/mixed; boundary=", "", "multipart/mixed; boundary=é"]
)
def test_a_type_without_a_boundary_is_named(header: str) -> None:
    with pytest.raises(BadMultipart):
        boundary_of(header)
