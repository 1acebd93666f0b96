"""Core dumps recognised by what they are, and names for their addresses."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import cbor2
import pytest
from elf_files import LoadedProgram, firmware, linux_core
from hypothesis import example, given
from hypothesis import strategies as st
from zephyr_kernel import table

from agent.errors import AgentError, UsageError
from agent.observability.coredumps.device_coredump import parse_device_coredump
from agent.observability.coredumps.elf import ElfTruncated
from agent.observability.coredumps.linux_core import loaded_modules, parse_linux_core
from agent.observability.coredumps.recognise import recognise
from agent.observability.coredumps.symbols import ElfSymbols
from agent.observability.ingest.uploads import FileKind


def named(data: bytes) -> io.BytesIO:
    file = io.BytesIO(data)
    file.name = "file"
    return file


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"CORE\x02\0\0\0", FileKind.COREDUMP),
        (b"ZE\x02\0\x03\0", FileKind.ZEPHYR_COREDUMP),
        (linux_core(), FileKind.ELF_COREDUMP),
        (b"PK\x03\x04", FileKind.MAR),
    ],
)
def test_a_core_dump_is_known_by_its_first_bytes(data, kind):
    assert recognise(named(data)) is kind


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no core dump"),
        (b"ZEBRA", "no core dump"),
        (firmware({}), "no core dump"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"#CD:BEGIN#", "no core dump"),
    ],
)
def test_what_is_no_core_dump_is_refused_with_the_way_on(data, words):
    with pytest.raises(UsageError, match=words) as refused:
        recognise(named(data))
    assert refused.value.hint


def test_a_linux_core_tells_who_died_of_what():
    core = parse_linux_core(io.BytesIO(linux_core()))
    assert (core.machine, core.command, core.signal) == ("x86-64", "modemd", 11)
    assert [thread.id for thread in core.threads] == [100, 101]
    assert core.threads[0].registers["rip"] == 0x1010
    assert core.threads[0].registers["rsp"] == 0x1013
    assert [(each.address, each.size) for each in core.regions] == [(0x400000, 64)]
    assert core.missing == 0


@pytest.mark.parametrize(
    ("machine", "wide", "pc", "sp"),
    [(3, False, ("eip", 12), ("esp", 15)), (40, False, ("pc", 15), ("sp", 13)),
     (183, True, ("pc", 32), ("sp", 31)), (243, True, ("pc", 0), ("sp", 2))],
)  # fmt: skip
def test_the_registers_of_each_machine_stand_where_its_kernel_puts_them(machine, wide, pc, sp):
    core = parse_linux_core(io.BytesIO(linux_core(machine=machine, wide=wide)))
    registers = core.threads[0].registers
    assert registers[pc[0]] == 0x1000 + pc[1]
    assert registers[sp[0]] == 0x1000 + sp[1]


def test_a_linux_core_of_an_unknown_machine_still_tells_its_threads():
    core = parse_linux_core(io.BytesIO(linux_core(machine=999)))
    assert [(thread.id, thread.registers) for thread in core.threads] == [(100, {}), (101, {})]


def test_a_linux_core_that_was_cut_short_says_by_how_much():
    assert parse_linux_core(io.BytesIO(linux_core()[:-10])).missing == 10


@pytest.mark.parametrize("end", [20, 63, 100, 400])
def test_a_linux_core_that_ends_in_its_headers_or_notes_is_cut_short(end):
    with pytest.raises(ElfTruncated):
        parse_linux_core(io.BytesIO(linux_core()[:end]))


@pytest.mark.parametrize("wide", [True, False])
def test_a_linux_core_tells_what_was_touched_and_which_files_were_loaded(wide):
    program = LoadedProgram(b"\1" * 20, start=0x7F0000, bias=0x7F0000)
    core = parse_linux_core(io.BytesIO(linux_core(program=program, wide=wide)))
    assert core.fault_address == 0x1234
    assert [(each.start, each.offset, each.name) for each in core.files] == [
        (0x7F0000, 0, "/usr/bin/modemd"),
        (0x7F1000, 0x1000, "/usr/bin/modemd"),
    ]
    (module,) = loaded_modules(core, io.BytesIO(linux_core(program=program, wide=wide)))
    assert (module.build_id, module.bias) == ("01" * 20, 0x7F0000)
    assert [module.holds(each) for each in (0x7EFFFF, 0x7F0000, 0x7F1FFF, 0x7F2000)] == [
        False, True, True, False,
    ]  # fmt: skip


def test_a_core_of_the_linux_agent_says_whom_it_came_from():
    note = {1: 1, 2: "1.25.2", 3: 1767323045, 4: "kit-1", 5: "board", 6: "main", 7: "1.0.0", 99: 0}
    core = parse_linux_core(io.BytesIO(linux_core(metadata=cbor2.dumps(note))))
    assert core.metadata == {
        "sdk_version": "1.25.2",
        "captured_date": "2026-01-02T03:04:05Z",
        "device_serial": "kit-1",
        "hardware_version": "board",
        "software_type": "main",
        "software_version": "1.0.0",
    }
    for damaged in (b"\xff", cbor2.dumps([1]), cbor2.dumps(note)[:-1]):
        assert parse_linux_core(io.BytesIO(linux_core(metadata=damaged))).metadata == {}


def test_a_signal_that_another_process_sent_has_no_address():
    assert parse_linux_core(io.BytesIO(linux_core(code=0))).fault_address is None
    assert parse_linux_core(io.BytesIO(linux_core(signal=6))).fault_address is None


def test_more_program_headers_than_the_header_can_count_are_counted_in_the_first_section():
    data = bytearray(linux_core())
    sections = len(data)
    data[56:58] = b"\xff\xff"
    data[40:48] = sections.to_bytes(8, "little")
    data += bytes(44) + (2).to_bytes(4, "little") + bytes(16)
    core = parse_linux_core(io.BytesIO(bytes(data)))
    assert (len(core.threads), len(core.regions)) == (2, 1)


WITH_PROGRAM = linux_core(program=LoadedProgram(b"\1" * 20))


@given(st.integers(0, len(WITH_PROGRAM)), st.binary(max_size=8), st.integers(0, len(WITH_PROGRAM)))
def test_any_damage_to_a_linux_core_is_an_error_or_a_summary(end, patch, at):
    data = bytearray(WITH_PROGRAM)
    data[at : at + len(patch)] = patch
    file = io.BytesIO(bytes(data[:end]))
    with suppress(ValueError):
        core = parse_linux_core(file)
        assert core.missing >= 0
        assert len(loaded_modules(core, file)) <= 2


@given(st.binary(max_size=100).map(lambda body: b"CORE\x02\0\0\0" + body) | st.binary(max_size=40))
@example(b"CORE\x02\0\0\0\x1c\0\0\0DUMP" + bytes(12))
def test_any_bytes_are_a_device_core_dump_or_an_error(data):
    with suppress(ValueError):
        assert parse_device_coredump(data).size == len(data)


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


@pytest.mark.parametrize("data", [b"", b"no ELF", firmware({"main": (0, 4)})[:100]])
def test_a_damaged_elf_file_is_a_named_error(tmp_path: Path, data: bytes):
    path = tmp_path / "zephyr.elf"
    path.write_bytes(data)
    with pytest.raises(AgentError, match=r"zephyr\.elf"):
        ElfSymbols(path)


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
