"""A Zephyr core dump that is a file: the kit's flash partition, as a debugger reads it."""

from __future__ import annotations

import struct

import pytest

from agent.console.dump_file import read_dump_file
from agent.console.zephyr_coredump import DumpStatus
from agent.observability.coredumps.recognise import is_zephyr_dump
from tests.support.dumps.zephyr_dumps import arch, header, memory, partition, trailer

WHOLE = header() + arch() + memory(0x20000000, b"\xff" * 64)
TRAILED = header(flag=1) + arch()
TRAILED += trailer(TRAILED)


@pytest.mark.parametrize("padding", [b"", b"\xff" * 16, bytes(16)])
@pytest.mark.parametrize("dump", [WHOLE, TRAILED])
def test_the_dump_of_a_partition_is_read_without_what_stands_around_it(dump, padding):
    held = partition(dump, padding=padding)
    assert is_zephyr_dump(held[:20])
    read = read_dump_file(bytearray(held))
    assert (read.data, read.dump.status) == (dump, DumpStatus.COMPLETE)


@pytest.mark.parametrize("dump", [WHOLE, TRAILED])
def test_erased_flash_behind_a_dump_is_none_of_it(dump):
    read = read_dump_file(bytearray(dump + b"\xff" * 999))
    assert (read.data, read.dump.status) == (dump, DumpStatus.COMPLETE)
    rest = read_dump_file(bytearray(dump + b"\xff" * 999 + b"\x01"))
    assert (rest.dump.size, rest.dump.status) == (len(dump) + 1000, DumpStatus.DAMAGED)


def test_a_partition_that_does_not_hold_a_whole_dump_says_why():
    assert read_dump_file(bytearray(partition(WHOLE, error=-28))).dump.status is DumpStatus.ERROR
    changed = bytearray(partition(WHOLE))
    changed[16 + len(WHOLE) - 1] ^= 1
    assert "checksum" in read_dump_file(changed).dump.detail
    cut = read_dump_file(bytearray(partition(WHOLE)[: 16 + len(WHOLE) - 1]))
    assert cut.dump.status is DumpStatus.INCOMPLETE


@pytest.mark.parametrize("size", range(17))
def test_a_partition_cut_in_its_header_holds_no_dump(size):
    cut = partition(WHOLE)[:size]
    assert is_zephyr_dump(cut) is (size >= 16)
    assert not read_dump_file(bytearray(cut)).dump.usable


def test_a_text_that_begins_like_a_partition_is_none():
    assert not is_zephyr_dump(b"CD\r\nbuild/zephyr$ ls\r\n")
    assert not is_zephyr_dump(struct.pack("<2sH16s", b"CD", 1, b"1234567890123456"))
