"""The build id of an ELF file at the stand-in: found where it is, whatever the file is."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.standin.observability.upload_commits import gnu_build_id

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
