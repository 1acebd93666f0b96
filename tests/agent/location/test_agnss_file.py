"""A-GNSS data: read whole, or refused with the element and the offset."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.location.agnss_file import ELEMENTS, DamagedAssistance, parse_agnss


def block(number: int, count: int = 1) -> bytes:
    return struct.pack("<BH", number, count) + bytes(count * ELEMENTS[number].layout.size)


# The sizes are those of the documented elements.
@pytest.mark.contract("D8.2")
@pytest.mark.parametrize(
    ("number", "size"),
    [(1, 14), (2, 62), (3, 31), (4, 8), (5, 8), (6, 4), (7, 16), (8, 15), (9, 4), (11, 31),
     (12, 62), (13, 4), (14, 24), (15, 61), (16, 8), (17, 8)],
)  # fmt: skip
def test_each_element_has_its_documented_size(number: int, size: int) -> None:
    assert ELEMENTS[number].layout.size == size
    values = ELEMENTS[number].layout.unpack(bytes(size))
    assert len(values) == len(ELEMENTS[number].fields)


@pytest.mark.contract("D8.2")
def test_blocks_in_any_order_are_read() -> None:
    blocks = parse_agnss(b"\x01" + block(3, 2) + block(9) + block(6, 32) + block(7))
    assert [(found.element.number, len(found.values)) for found in blocks] == [
        (3, 2), (9, 1), (6, 32), (7, 1),
    ]  # fmt: skip
    assert blocks[1].values == ({"unhealthy_mask": 0},)


def test_no_block_at_all_is_legal() -> None:
    assert parse_agnss(b"\x01") == ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\x02", "schema 2 at offset 0"),
        (b"\x01" + block(1) + b"\x09", "offset 18"),
        (b"\x01\x0a\x01\x00", "unknown A-GNSS element 10 at offset 1"),
        (b"\x01" + block(1) + block(2)[:-1], "element 2 .* at offset 18 needs 62 bytes; 61"),
        (b"\x01" + block(1, 2), "2 elements of type 1"),
        (b"\x01" + block(2, 33), "33 elements of type 2"),
        (b"\x01" + block(6, 33), "33 elements of type 6"),
        (b"\x01" + block(9)[:2], "ends inside a block's header at offset 1"),
        (b'{"message":"no"}', "schema 123"),
    ],
)
def test_damage_is_named_with_element_and_offset(data: bytes, words: str) -> None:
    with pytest.raises(DamagedAssistance, match=words):
        parse_agnss(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_blocks_or_are_refused(data: bytes) -> None:
    try:
        blocks = parse_agnss(data)
    except DamagedAssistance:
        return
    assert 1 + sum(3 + len(b.values) * b.element.layout.size for b in blocks) == len(data)
