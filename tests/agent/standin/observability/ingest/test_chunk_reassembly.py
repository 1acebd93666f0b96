"""How the stand-in puts chunks together, checked against the published example and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.standin.observability.ingest.chunk_reassembly import Reassembler, crc16
from tests.support.dumps.sdk_bytes import EXAMPLE_PAIR, EXAMPLE_SINGLE, chunks, single, varint

DAY_S = 86_400.0


def feed(parts: list[bytes], reassembler: Reassembler | None = None, key: str = "kit"):
    """Return the messages that came out, and every problem on the way."""
    reassembler = reassembler or Reassembler()
    received = [reassembler.receive(key, part, 0.0) for part in parts]
    messages = [one.message for one in received if one.message is not None]
    return messages, [problem for one in received for problem in one.problems]


def test_the_check_value_of_the_crc_is_the_published_one() -> None:
    assert crc16(b"123456789") == 0x31C3


@pytest.mark.contract("O5.1")
def test_both_forms_of_the_published_example_give_the_same_message() -> None:
    one, problems = feed([EXAMPLE_SINGLE])
    two, more_problems = feed(list(EXAMPLE_PAIR))
    assert one == two
    assert one[0][:1] == b"\x02"
    assert not problems + more_problems


@pytest.mark.contract("O5.1")
@given(message=st.binary(max_size=300), size=st.integers(9, 80), pad=st.booleans())
def test_a_message_comes_back_whatever_the_chunk_size(message: bytes, size: int, pad: bool) -> None:
    parts = chunks(message, size, pad=pad)
    assert all(len(part) <= size for part in parts)
    assert feed(parts) == ([message], [])


@pytest.mark.contract("O5.1")
@given(data=st.data())
def test_one_flipped_bit_in_the_data_never_gives_a_message(data: st.DataObject) -> None:
    message = data.draw(st.binary(min_size=1, max_size=120))
    parts = [bytearray(part) for part in chunks(message, 40)]
    part = data.draw(st.sampled_from(parts))
    # Behind the header byte and a varint of at most two bytes there is data and CRC only.
    bit = data.draw(st.integers(3 * 8, len(part) * 8 - 1)) if len(part) > 3 else 8
    part[bit // 8] ^= 1 << bit % 8
    messages, problems = feed([bytes(part) for part in parts])
    assert messages == []
    assert problems


def test_the_old_form_carries_its_crc_in_the_first_chunk() -> None:
    message = b"old devices are still in the field"
    crc = crc16(message).to_bytes(2, "little")
    assert feed([b"\x00" + crc + message]) == ([message], [])
    first = b"\x40" + varint(len(message)) + crc + message[:10]
    assert feed([first, b"\x80\x0a" + message[10:]]) == ([message], [])
    assert feed([b"\x00" + b"\xff\xff" + message])[0] == []


@pytest.mark.contract("O5.1")
def test_a_chunk_that_came_twice_is_taken_once() -> None:
    first, middle, *rest = chunks(bytes(range(200)), 40)
    assert feed([first, middle, middle, *rest]) == ([bytes(range(200))], [])


@pytest.mark.contract("O5.1")
def test_a_missing_chunk_spoils_its_message_and_no_other() -> None:
    first, _, *rest = chunks(bytes(range(200)), 40)
    messages, problems = feed([first, *rest, single(b"\x02next")])
    assert messages == [b"\x02next"]
    assert problems


def test_a_new_message_ends_the_one_that_is_open() -> None:
    first, *_ = chunks(bytes(100), 40)
    messages, problems = feed([first, *chunks(b"\x02" * 90, 40)])
    assert messages == [b"\x02" * 90]
    assert len(problems) == 1


@pytest.mark.contract("O5.1")
def test_the_chunks_of_two_devices_do_not_meet() -> None:
    reassembler = Reassembler()
    here, there = chunks(b"h" * 90, 40), chunks(b"t" * 90, 40)
    out = []
    for ours, theirs in zip(here, there, strict=True):
        out.append(reassembler.receive("here", ours, 0.0).message)
        out.append(reassembler.receive("there", theirs, 0.0).message)
    assert [message for message in out if message] == [b"h" * 90, b"t" * 90]


def test_a_message_waits_a_day_for_its_rest_and_no_longer() -> None:
    first, second, third = chunks(bytes(90), 40)
    reassembler = Reassembler()
    reassembler.receive("kit", first, 0.0)
    assert not reassembler.receive("kit", second, DAY_S - 1).problems
    late = reassembler.receive("kit", third, 3 * DAY_S)
    assert late.message is None
    assert late.problems


def test_what_waits_has_a_bound() -> None:
    reassembler = Reassembler(max_message_bytes=1000, max_open_bytes=300)
    announced = reassembler.receive("huge", b"\x48" + varint(1001) + b"x", 0.0)
    assert announced.problems
    for number in range(10):
        reassembler.receive(number, b"\x48" + varint(200) + bytes(100), float(number))
    assert reassembler.receive(0, b"\x80" + varint(100) + bytes(102), 11.0).problems
    assert reassembler.receive(9, b"\x80" + varint(100) + bytes(102), 11.0).message == bytes(200)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x08", b"\x08\x00", b"\x09\x00\x00\x00", b"\x18\x00\x00\x00", b"\x48", b"\x48\x80"],
    ids=[
        "empty",
        "head-only",
        "half-a-crc",
        "channel",
        "configuration",
        "no-length",
        "half-length",
    ],
)
def test_what_is_no_chunk_is_named(raw: bytes) -> None:
    messages, problems = feed([raw])
    assert messages == []
    assert problems


def test_an_empty_message_is_whole() -> None:
    assert feed([b"\x08\x00\x00"]) == ([b""], [])


@settings(max_examples=200)
@given(parts=st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_make_it_stumble(parts: list[bytes]) -> None:
    reassembler = Reassembler(max_message_bytes=500, max_open_bytes=800)
    feed(parts, reassembler)
    assert feed([single(b"still there")], reassembler)[0] == [b"still there"]
