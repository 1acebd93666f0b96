"""The registers of each processor family, in the order that its kernel prints them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console.zephyr_coredump import parse_dump
from agent.console.zephyr_registers import frame_registers, registers
from tests.support.dumps.zephyr_dumps import arch_block, header


def words(count: int, word: str = "I") -> bytes:
    """Return `count` words: the n-th holds 0x100 + n."""
    return struct.pack(f"<{count}{word}", *range(0x100, 0x100 + count))


def read(target: int, version: int, body: bytes, bits: int = 5) -> dict[str, int]:
    data = header(target=target, bits=bits) + arch_block(version, body)
    return registers(parse_dump(data), data)


# Orders: arch/*/core/coredump.c of the kernel; places are counted from 0.
@pytest.mark.parametrize(
    ("target", "version", "body", "bits", "places"),
    [
        pytest.param(1, 1, words(14), 5, {"eax": 2, "esp": 6, "eip": 10, "cs": 12}, id="x86"),
        pytest.param(2, 1, words(22, "Q"), 6, {"rip": 12, "rbp": 16, "r15": 21}, id="x86-64"),
        pytest.param(2, 1, words(17, "Q"), 6, {"rsp": 7, "rbp": 16}, id="x86-64 without saved"),
        pytest.param(3, 2, words(17), 5, {"r12": 4, "pc": 6, "sp": 8, "r11": 16}, id="Cortex-M"),
        pytest.param(4, 1, words(19), 5, {"ra": 0, "a7": 12, "pc": 17, "sp": 18}, id="RV32"),
        pytest.param(4, 1, words(13), 5, {"ra": 0, "a5": 10, "pc": 11, "sp": 12}, id="RV32E"),
        pytest.param(4, 2, words(19, "Q"), 6, {"t6": 16, "pc": 17, "sp": 18}, id="RV64"),
        pytest.param(4, 3, words(33), 5, {"zero": 0, "sp": 2, "s11": 27, "pc": 32}, id="RV32 all"),
        pytest.param(4, 4, words(33, "Q"), 6, {"ra": 1, "a0": 10, "pc": 32}, id="RV64 all"),
        pytest.param(6, 1, words(22, "Q"), 6, {"x18": 18, "lr": 19, "pc": 21}, id="ARM64"),
        pytest.param(6, 2, words(24, "Q"), 6, {"spsr": 20, "fp": 22, "sp": 23}, id="ARM64 v2"),
    ],
)
def test_each_register_stands_where_the_kernel_of_its_family_puts_it(
    target, version, body, bits, places
):
    found = read(target, version, body, bits)
    assert {name: found[name] for name in places} == {
        name: 0x100 + place for name, place in places.items()
    }
    assert set(frame_registers(found)) >= {"pc", "sp"} or (target == 6 and version == 1)


@pytest.mark.parametrize(
    ("count", "a0"), [(21, 5), (22, 6), (24, 5), (25, 6)], ids=["S2", "sample", "loops", "ESP32"]
)
def test_an_xtensa_says_by_its_number_of_registers_which_it_has(count, a0):
    body = struct.pack("<BHB", 2, 2, 3) + words(count)
    found = read(5, 1, body)
    assert len(found) == count
    assert (found["pc"], found["exccause"], found["a0"]) == (0x100, 0x101, 0x100 + a0)
    assert ("lbeg" in found) == (count in (24, 25))
    old = struct.pack("<BH", 1, 1) + words(count)
    assert read(5, 1, old) == found


def test_an_xtensa_return_address_is_told_without_the_size_of_its_window():
    body = struct.pack("<BHB", 2, 2, 3) + struct.pack(
        "<21I", 0x40081234, *[0] * 4, 0x800D5678, *[7] * 15
    )
    assert frame_registers(read(5, 1, body)) == {"pc": 0x40081234, "lr": 0x400D5678, "sp": 7}


@pytest.mark.parametrize(
    ("target", "version", "body"),
    [
        (3, 9, words(17)),
        (0, 1, words(9)),
        (9, 1, words(9)),
        (5, 1, b"\2\2\0\3" + words(23)),
        (5, 1, b""),
    ],
    ids=["an unknown version", "no family", "an unknown family", "an odd number", "nothing"],
)
def test_what_is_not_known_gives_no_registers(target, version, body):
    assert read(target, version, body) == {}
    assert frame_registers({}) == {}


def test_a_short_block_gives_what_it_holds():
    assert list(read(3, 2, words(9) + b"ab")) == [
        "r0",
        "r1",
        "r2",
        "r3",
        "r12",
        "lr",
        "pc",
        "xpsr",
        "sp",
    ]


@given(st.integers(0, 8), st.integers(0, 6), st.binary(max_size=300))
def test_any_block_gives_registers_or_none(target, version, body):
    found = read(target, version, body)
    assert all(isinstance(value, int) for value in found.values())
    frame_registers(found)
