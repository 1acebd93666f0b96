"""ELF headers and notes, as far as a core dump needs them."""

from __future__ import annotations

import io

import pytest

from agent.observability.coredumps.elf import ElfTruncated
from agent.observability.coredumps.linux_core import parse_linux_core
from tests.support.dumps.elf_files import linux_core


@pytest.mark.parametrize("end", [20, 63, 100, 400])
def test_a_linux_core_that_ends_in_its_headers_or_notes_is_cut_short(end):
    with pytest.raises(ElfTruncated):
        parse_linux_core(io.BytesIO(linux_core()[:end]))


def test_more_program_headers_than_the_header_can_count_are_counted_in_the_first_section():
    data = bytearray(linux_core())
    sections = len(data)
    data[56:58] = b"\xff\xff"
    data[40:48] = sections.to_bytes(8, "little")
    data += bytes(44) + (2).to_bytes(4, "little") + bytes(16)
    core = parse_linux_core(io.BytesIO(bytes(data)))
    assert (len(core.threads), len(core.regions)) == (2, 1)
