"""Functions and lines of addresses, from a firmware's ELF file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.errors import AgentError
from agent.observability.coredumps.symbols import ElfSymbols
from tests.support.dumps.elf_files import firmware, line_tables
from tests.support.dumps.zephyr_dumps import table


def test_an_address_has_a_function_with_and_without_the_thumb_bit(tmp_path: Path):
    path = tmp_path / "zephyr.elf"
    path.write_bytes(firmware({"main": (0x1000, 0x40), "k_panic": (0x2000, 8)}))
    symbols = ElfSymbols(path)
    assert symbols.build_id == "01" * 20
    assert symbols.machine == "EM_ARM"
    for address in (0x1010, 0x1011):
        found = symbols.locate(address)
        assert (found.function, found.offset) == ("main", 0x10)
    assert symbols.locate(0x2007).function == "k_panic"
    assert symbols.locate(0x2008).function is None


@pytest.mark.parametrize(("kind", "build_id"), [(2, "01" * 20), (3, "09" * 20)])
def test_the_id_of_a_build_is_the_one_that_its_device_reports(tmp_path: Path, kind, build_id):
    # Kind 3: patched in by the device SDK's script, where the linker writes none or another.
    own = {
        "g_memfault_build_id": bytes([kind, 20, 0, 0]),
        "g_memfault_sdk_derived_build_id": b"\x09" * 20,
    }
    path = tmp_path / "app.elf"
    path.write_bytes(firmware({"main": (0x1000, 0x40)}, objects=own))
    assert ElfSymbols(path).build_id == build_id


def test_an_address_that_a_call_returns_to_is_that_of_the_call(tmp_path: Path):
    path = tmp_path / "zephyr.elf"
    path.write_bytes(firmware({"ends_in_panic": (0x1000, 0x40), "innocent": (0x1040, 8)}))
    symbols = ElfSymbols(path)
    for register, function, offset in (("lr", "ends_in_panic", 0x40), ("pc", "innocent", 0)):
        found = symbols.frame(register, 0x1041)
        assert (found["function"], found["offset"]) == (function, offset)
        assert (found["register"], found["address"]) == (register, 0x1040)


@pytest.mark.parametrize("data", [b"", b"no ELF", firmware({"main": (0, 4)})[:100]])
def test_a_damaged_elf_file_is_a_named_error(tmp_path: Path, data: bytes):
    path = tmp_path / "zephyr.elf"
    path.write_bytes(data)
    with pytest.raises(AgentError, match=r"zephyr\.elf"):
        ElfSymbols(path)


def test_a_file_without_symbols_is_refused_with_what_has_them(tmp_path: Path):
    # It would name nothing, and say of the firmware that it lacks CONFIG_DEBUG_THREAD_INFO.
    path = tmp_path / "zephyr.strip"
    path.write_bytes(firmware({}))
    with pytest.raises(AgentError, match="stripped") as raised:
        ElfSymbols(path)
    assert "zephyr.elf" in raised.value.hint


def test_a_line_is_that_of_what_the_linker_kept(tmp_path: Path):
    # What nobody calls is left out of the program; its lines stay, and begin at address 0.
    tables = line_tables((0, 0x40, 7), (0x10, 0x20, 42))
    path = tmp_path / "zephyr.elf"
    path.write_bytes(firmware({"reset": (0x10, 0x20)}, others=tables))
    found = ElfSymbols(path).locate(0x18)
    assert (found.function, found.file, found.line) == ("reset", "main.c", 42)
    path.write_bytes(firmware({"start": (0, 0x40)}, others=tables))
    assert ElfSymbols(path).locate(0x18).line == 7


def test_code_that_the_compiler_put_in_no_line_has_none(tmp_path: Path):
    # DWARF 5, 6.2.2: line 0 is that of code which no line can be named for, as a call that clang
    # made of the same call in two branches.
    path = tmp_path / "zephyr.elf"
    path.write_bytes(firmware({"check": (0x10, 0x40)}, others=line_tables((0x10, 0x20, 0))))
    found = ElfSymbols(path).locate(0x18)
    assert (found.function, found.file, found.line) == ("check", None, None)


def test_debug_information_that_cannot_be_read_costs_the_lines_alone(tmp_path: Path):
    path = tmp_path / "zephyr.elf"
    unread = {b".debug_info": b"\x20" * 40}
    path.write_bytes(firmware({"main": (0x1000, 0x40)}, others=unread))
    symbols = ElfSymbols(path)
    found = symbols.locate(0x1010)
    assert (symbols.build_id, found.function, found.line) == ("01" * 20, "main", None)


FIRMWARE = firmware({"main": (0x1000, 0x40)}, objects=table())


@given(
    st.lists(
        st.tuples(st.integers(0, len(FIRMWARE) - 1), st.sampled_from([0, 1, 4, 0x7F, 0x80, 0xFF])),
        min_size=1,
        max_size=4,
    )
)
@example([(592, 127)])  # a compressed section that is none
@example([(247, 1)])  # a name without an end
def test_any_damage_to_an_elf_file_is_a_named_error_or_symbols(tmp_path_factory, changes):
    data = bytearray(FIRMWARE)
    for at, byte in changes:
        data[at] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.elf"
    path.write_bytes(data)
    with suppress(AgentError):
        ElfSymbols(path).locate(0x1000)
