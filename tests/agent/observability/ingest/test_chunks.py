"""What chunks carry: a message's kind and project key, and run-length coding undone."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observability.ingest.chunks import expand, kind_of, open_message
from tests.support.dumps.sdk_bytes import run_lengths

KEY = b"THIS-IS-A-TEST-KEY-0123456789abc"


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (0, "none"),
        (1, "coredump"),
        (2, "event"),
        (3, "log"),
        (4, "cdr"),
        (5, "mar"),
        (9, "unknown"),
    ],
)
def test_the_low_six_bits_tell_the_kind(header, kind):
    assert open_message(bytes([header])).kind == kind
    assert kind_of(bytes([header | 0x80])) == kind


@pytest.mark.contract("O4.3")
def test_a_project_key_in_the_message_is_no_part_of_what_it_holds():
    opened = open_message(b"\x42" + KEY + b"\0" + b"payload")
    assert (opened.kind, opened.payload) == ("event", b"payload")
    assert KEY.decode() not in repr(opened)
    assert open_message(b"\x42" + b"\xff" * 32 + b"\0").payload == b""


@pytest.mark.parametrize("data", [b"", b"\x42", b"\x42" + KEY, b"\x42" + KEY + b"x", b"\x81\x08"])
def test_a_message_that_is_cut_short_is_an_error(data):
    with pytest.raises(ValueError, match=r"."):
        open_message(data)


def test_runs_and_literals_expand():
    assert expand(bytes.fromhex("08aa 05 010203 04 bb")) == bytes.fromhex("aaaaaaaa 010203 bbbb")


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=3), st.integers(1, 300)), max_size=8))
def test_what_a_device_codes_comes_back(runs):
    plain = b"".join(part * count for part, count in runs)
    assert open_message(b"\x81" + run_lengths(plain)).payload == plain


@given(st.binary(max_size=60))
def test_any_bytes_expand_or_are_an_error(coded):
    with suppress(ValueError):
        assert len(expand(coded, limit=100)) <= 100


def test_a_few_bytes_do_not_fill_the_memory():
    with pytest.raises(ValueError, match="exceed"):
        expand(bytes.fromhex("feffffff0f 00"))
