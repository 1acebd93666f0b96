"""The threads of a Zephyr dump, by the layout of its build; any of it damaged or left out."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console.zephyr_coredump import parse_dump
from agent.console.zephyr_threads import MAX_THREADS, ThreadLayout, ThreadList, read_threads
from tests.support.dumps.zephyr_dumps import (
    OFFSETS,
    UNIMPLEMENTED,
    Thread,
    address,
    arch,
    header,
    kernel,
    memory,
    threads,
)

LAYOUT = ThreadLayout(OFFSETS, 4)
LISTED = [
    Thread("main", 0x80, 0, entry=0x1001),
    Thread("idle", 0x00, 15, pc=0x2345, entry=0x2001),
    Thread("sysworkq", 0x02, -1, pc=0x3456, entry=0x3001),
]
DUMP = header() + arch() + kernel(LISTED, current=2)


def read(data: bytes, layout: ThreadLayout = LAYOUT) -> ThreadList:
    return read_threads(parse_dump(data), data, layout)


@pytest.mark.contract("O5.2")
def test_each_thread_has_its_name_state_priority_and_stack():
    listed = read(DUMP)
    assert listed.detail == ""
    assert [
        (each.name, each.current, each.states, each.priority, each.entry, each.pc)
        for each in listed.threads
    ] == [
        ("sysworkq", True, ("pending",), -1, 0x3001, None),
        ("main", False, ("ready",), 0, 0x1001, 0),
        ("idle", False, (), 15, 0x2001, 0x2345),
    ]
    assert listed.threads[1].stack_pointer == 0x20008000


def test_what_a_build_does_not_have_is_left_out():
    without = tuple(
        UNIMPLEMENTED if place in (7, 8, 9) else offset for place, offset in enumerate(OFFSETS)
    )
    thread = read(DUMP, ThreadLayout(without, 4)).threads[1]
    assert (thread.name, thread.priority, thread.stack_pointer, thread.pc) == (None,) * 4
    assert thread.states == ("ready",)
    oldest = read(DUMP, ThreadLayout(OFFSETS[:9], 4)).threads[1]
    assert (oldest.name, oldest.states) == (None, ("ready",))


def test_the_stacks_of_other_families_are_not_read_as_those_of_a_cortex_m():
    other = read(header(target=4) + arch(1) + kernel(LISTED))
    assert [each.pc for each in other.threads] == [None] * 3


def test_a_list_whose_rest_is_not_in_the_dump_says_so():
    listed = read(header() + kernel(LISTED[:1], end=0x2002_0000))
    assert [each.name for each in listed.threads] == ["main", None]
    assert listed.threads[1].states is None
    assert "not in the dump" in listed.detail


@pytest.mark.parametrize("end", [address(0), address(2)])
def test_a_list_that_bites_its_tail_ends(end):
    listed = read(header() + kernel(LISTED, end=end))
    assert len(listed.threads) == 3
    assert "does not end" in listed.detail


def test_a_list_longer_than_any_has_an_end():
    listed = read(header() + kernel([Thread("x")] * (MAX_THREADS + 9)))
    assert len(listed.threads) == MAX_THREADS
    assert "does not end" in listed.detail


def test_a_kernel_that_is_cut_short_has_no_threads_and_no_error():
    data = header() + threads(bytes(4)) + memory(0x20000000, b"x")
    assert read(data) == ThreadList(())
    assert read(header() + arch()).detail
    assert "another build" in read(DUMP, ThreadLayout(OFFSETS, 8)).detail


@pytest.mark.parametrize(
    ("offsets", "word"), [(OFFSETS, 3), ((2, *OFFSETS[1:]), 4), (OFFSETS[:8], 4)]
)
def test_a_table_that_is_damaged_or_of_another_version_is_refused(offsets, word):
    with pytest.raises(ValueError, match="table of threads"):
        ThreadLayout(offsets, word)


@given(
    st.lists(st.sampled_from([*OFFSETS, 0, 4, 5000]), min_size=9, max_size=14),
    st.binary(max_size=40),
    st.integers(0, len(DUMP)),
)
def test_any_layout_and_any_damage_give_a_list(offsets, patch, at):
    data = bytearray(DUMP)
    data[at : at + len(patch)] = patch
    listed = read(bytes(data), ThreadLayout((1, *offsets), 4))
    assert len(listed.threads) <= MAX_THREADS + 1


@pytest.mark.contract("O5.2")
def test_a_pointer_of_eight_bytes_is_read_whole_at_the_very_end_too():
    body = bytearray(0x80)
    struct.pack_into("<BBb", body, 12, 0, 4, -2)
    data = header(target=6, bits=6) + threads(struct.pack("<QQ", 0, 0x1_0000_0000))
    data += memory(0x1_0000_0000, bytes(body), "Q")
    offsets = (1, 0, 8, 0x40, 0x48, 13, 12, 14, 0x50)
    (thread,) = read(data, ThreadLayout(offsets, 8)).threads
    assert (thread.address, thread.priority) == (0x1_0000_0000, -2)
    assert thread.states == ("sleeping or not started",)
