"""Zephyr core dumps: each block, each state, any damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console.zephyr_coredump import (
    DumpStatus,
    kernel_words,
    parse_dump,
    reason_name,
    target_name,
)
from agent.console.zephyr_registers import registers
from tests.support.dumps.zephyr_dumps import arch, header, memory, snapshot, threads, trailer

WHOLE = header() + arch() + threads() + memory(0x20000000, b"abcd") + memory(0x20001000, bytes(64))


@pytest.mark.contract("O5.2")
def test_a_whole_dump_names_its_blocks_and_memory():
    dump = parse_dump(WHOLE)
    assert dump.usable
    assert [block.id for block in dump.blocks] == ["A", "T", "M", "M"]
    first = dump.blocks[2]
    assert (first.address, first.size) == (0x20000000, 4)
    assert WHOLE[first.start : first.start + first.size] == b"abcd"


@pytest.mark.parametrize(("version", "count"), [(1, 9), (2, 17), (3, 17)])
def test_registers_of_each_version_of_the_arm_block(version, count):
    data = header() + arch(version)
    found = registers(parse_dump(data), data)
    assert len(found) == count
    assert (found["r0"], found["pc"], found["sp"]) == (0x100, 0x106, 0x108)


def test_the_words_of_the_kernel_are_as_wide_as_its_pointers():
    body = struct.pack("<4I", 1, 0x20000010, 2, 0) + b"ab"
    data = header() + threads(body)
    assert kernel_words(parse_dump(data), data) == (1, 0x20000010, 2, 0)
    data = header(target=6, bits=6) + threads(body)
    assert kernel_words(parse_dump(data), data) == (0x20000010_00000001, 2)
    assert kernel_words(parse_dump(header() + arch()), header() + arch()) is None


def test_pointers_of_eight_bytes():
    data = header(target=6, bits=6) + memory(0xFFFF_0000_0000, b"abc", "Q") + snapshot(b"r", "Q")
    dump = parse_dump(data)
    assert dump.usable
    assert dump.blocks[0].address == 0xFFFF_0000_0000
    assert registers(dump, data) == {}


@pytest.mark.parametrize("version", [1, 2])
def test_both_header_versions_are_read(version):
    assert parse_dump(header(version) + memory(0, b"x")).usable


def test_a_checked_dump_is_complete_only_with_its_crc():
    body = header(flag=1) + memory(0x100, b"abcdef")
    assert parse_dump(body + trailer(body)).usable
    assert parse_dump(body).status is DumpStatus.CRC_MISSING
    assert parse_dump(body + trailer(body + b"!")).status is DumpStatus.CRC_MISMATCH
    assert parse_dump(body + trailer(body) + b"M").status is DumpStatus.DAMAGED


def test_an_unknown_block_ends_the_reading_and_not_the_use():
    dump = parse_dump(WHOLE + b"Q" + bytes(40))
    assert (dump.status, dump.unknown_tail, len(dump.blocks)) == (DumpStatus.COMPLETE, True, 4)
    body = header(flag=1) + b"Q" + bytes(40)
    assert parse_dump(body + trailer(body)).usable
    assert parse_dump(body).status is DumpStatus.CRC_MISSING
    assert parse_dump(body + trailer(body + b"!")).status is DumpStatus.CRC_MISMATCH


def test_a_section_printed_prettily_names_the_command_that_prints_a_whole_dump():
    assert "`coredump print`" in parse_dump(b"\0" * 40).detail


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"", DumpStatus.EMPTY, id="nothing"),
        pytest.param(b"\0" * 40, DumpStatus.NOT_A_DUMP, id="a section printed prettily"),
        pytest.param(b"Z", DumpStatus.INCOMPLETE, id="one byte"),
        pytest.param(header(3) + arch(), DumpStatus.UNSUPPORTED, id="a newer version"),
        pytest.param(header(bits=4) + arch(), DumpStatus.DAMAGED, id="pointers of 16 bits"),
        pytest.param(WHOLE + b"m", DumpStatus.DAMAGED, id="a small letter"),
        pytest.param(WHOLE + b"\0", DumpStatus.DAMAGED, id="a zero"),
        pytest.param(
            header() + b"M" + struct.pack("<HII", 1, 9, 8),
            DumpStatus.DAMAGED,
            id="memory backwards",
        ),
        pytest.param(
            header() + b"M" + struct.pack("<HII", 2, 0, 0),
            DumpStatus.UNSUPPORTED,
            id="newer memory",
        ),
    ],
)
def test_what_is_no_whole_dump_is_reported_as_what_it_is(data, status):
    dump = parse_dump(data)
    assert dump.status is status
    assert dump.detail


def test_a_header_without_blocks_is_a_whole_dump_for_it_has_the_reason():
    dump = parse_dump(header())
    assert dump.usable
    assert dump.blocks == ()


@given(st.integers(0, len(WHOLE) - 1))
def test_a_dump_that_ends_within_a_block_is_never_complete(size):
    dump = parse_dump(WHOLE[:size])
    ends = {len(header()), len(header() + arch()), len(header() + arch() + threads())}
    ends.add(len(WHOLE) - len(memory(0, bytes(64))))
    assert dump.usable == (size in ends)


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda body: header() + body))
def test_any_bytes_have_a_status(data):
    dump = parse_dump(data)
    assert dump.size == len(data)
    assert all(block.start + block.size <= len(data) for block in dump.blocks)


@pytest.mark.parametrize(
    ("target", "reason", "name"),
    [
        (3, 0, "CPU exception"),
        (3, 4, "kernel panic"),
        (3, 25, "bus fault: precise data access"),
        (3, 37, "secure fault"),
        (3, 41, "secure fault: attribution unit violation"),
        (3, 45, "reason 45"),
        (3, 100, "reason 100"),
        (1, 25, "reason 25"),
    ],
)
def test_reasons_have_names(target, reason, name):
    found = parse_dump(header(target=target, reason=reason)).header
    assert found is not None
    assert reason_name(found) == name
    assert target_name(found) == {3: "ARM Cortex-M", 1: "x86"}[target]
