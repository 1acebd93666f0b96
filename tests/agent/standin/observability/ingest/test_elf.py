"""ELF files at the stand-in: what is looked for in their notes is found, whatever the file is."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.standin.observability.ingest.elf import gnu_build_id, linux_signal
from tests.support.dumps.elf_files import linux_core

BUILD_ID = bytes(range(20))


def elf(notes: bytes, *, wide: bool, order: str, times: int = 1) -> bytes:
    """Return an ELF file with `times` note sections that all lie over the same notes.

    Headers as in the System V ABI: e_shoff, e_shentsize and e_shnum; sh_type, sh_offset, sh_size.
    """
    head = bytearray(64)
    head[:6] = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2])
    table, size = 64 + len(notes), 64 if wide else 40
    struct.pack_into(order + ("Q" if wide else "I"), head, 40 if wide else 32, table)
    struct.pack_into(order + "HH", head, 58 if wide else 46, size, times)
    section = bytearray(size)
    struct.pack_into(order + "I", section, 4, 7)
    place = order + ("QQ" if wide else "II")
    struct.pack_into(place, section, 24 if wide else 16, 64, len(notes))
    return bytes(head) + notes + bytes(section) * times


def note(order: str, kind: int, name: bytes, content: bytes) -> bytes:
    padded = [part + bytes(-len(part) % 4) for part in (name, content)]
    return struct.pack(order + "III", len(name), len(content), kind) + b"".join(padded)


@pytest.mark.contract("O5.3")
@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_the_build_id_is_found_among_other_notes(wide: bool, order: str) -> None:
    others = note(order, 1, b"GNU\0", b"abi") + note(order, 3, b"Go\0", b"other")
    file = elf(others + note(order, 3, b"GNU\0", BUILD_ID), wide=wide, order=order)
    assert gnu_build_id(file) == BUILD_ID.hex()
    assert gnu_build_id(elf(others, wide=wide, order=order)) is None


@example(b"\xff" * 200, 2, 1)
@given(st.binary(max_size=400), st.sampled_from([1, 2]), st.sampled_from([1, 2]))
def test_no_file_is_too_odd_to_be_read(rest: bytes, width: int, order: int) -> None:
    found = gnu_build_id(b"\x7fELF" + bytes([width, order]) + rest)
    assert found is None or bytes.fromhex(found) in rest


@pytest.mark.timeout(30)
def test_sections_that_all_lie_over_the_same_notes_are_read_once() -> None:
    notes = note("<", 1, b"", b"") * 80_000
    assert gnu_build_id(elf(notes, wide=True, order="<", times=60_000)) is None


@pytest.mark.timeout(30)
def test_headers_of_a_core_that_all_lead_to_the_same_notes_are_followed_once() -> None:
    notes, count = note("<", 9, b"CORE\0", b"") * 40_000, 60_000
    head = linux_core()[:56] + struct.pack("<HHHH", count, 0, 0, 0)
    header = struct.pack("<IIQQQQQQ", 4, 6, 64 + count * 56, 0, 0, len(notes), len(notes), 4)
    assert linux_signal(head + header * count + notes) is None


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("number", "name"),
    [(3, "SIGQUIT"), (4, "SIGILL"), (5, "SIGTRAP"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"),
     (11, "SIGSEGV"), (24, "SIGXCPU"), (25, "SIGXFSZ"), (31, "SIGSYS"), (34, "Signal 34")],
)  # fmt: skip
def test_a_core_of_linux_says_which_signal_ended_it(number: int, name: str, wide: bool) -> None:
    assert linux_signal(linux_core(signal=number, wide=wide)) == name


@given(st.binary(max_size=300), st.integers(0, 600), st.booleans())
def test_a_core_that_is_damaged_has_no_signal_or_one(patch: bytes, at: int, wide: bool) -> None:
    whole = linux_core(wide=wide)
    for data in (patch, whole[:at], whole[:at] + patch + whole[at + len(patch) :]):
        assert linux_signal(data) is None or linux_signal(data).startswith(("SIG", "Signal "))


def test_a_core_in_the_other_byte_order_is_read_and_other_makers_notes_are_not() -> None:
    head = b"\x7fELF\x01\x02\x01" + bytes(9)
    head += struct.pack(">HHI4IHHHHHH", 4, 8, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    other = struct.pack(">III4s16xh2x", 5, 16, 1, b"QEMU", 9)
    notes = other + struct.pack(">III4s16xh2x", 5, 16, 1, b"CORE", 11)
    program = struct.pack(">8I", 4, 84, 0, 0, len(notes), len(notes), 6, 4)
    assert linux_signal(head + program + notes) == "SIGSEGV"
    assert linux_signal(head + program + other) is None
