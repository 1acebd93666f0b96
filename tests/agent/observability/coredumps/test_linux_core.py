"""Linux core dumps: process, threads, files and modules; damage is an error or a summary."""

from __future__ import annotations

import io
from contextlib import suppress

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observability.coredumps.linux_core import (
    LinuxCore,
    MappedFile,
    loaded_modules,
    parse_linux_core,
)
from tests.support.dumps.elf_files import LoadedProgram, linux_core


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


@pytest.mark.parametrize("wide", [True, False])
def test_a_linux_core_tells_what_was_touched_and_which_files_were_loaded(wide):
    program = LoadedProgram(b"\1" * 20, start=0x7F0000, bias=0x7F0000)
    core = parse_linux_core(io.BytesIO(linux_core(program=program, wide=wide)))
    assert core.fault_address == 0x1234
    assert [(each.start, each.offset, each.name) for each in core.files] == [
        (0x7F0000, 0, "/usr/bin/modemd"),
        (0x7F1000, 0x1000, "/usr/bin/modemd"),
    ]


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


def test_headers_that_point_to_the_same_notes_again_and_again_are_not_followed():
    core = linux_core(memory=b"")
    one, count = core[64 : 64 + 56], 60_000  # the header of its notes, which begin behind them all
    notes = core[64 + 2 * 56 :]
    head = core[:56] + count.to_bytes(2, "little") + core[58:64]
    again = one[:8] + (64 + count * 56).to_bytes(8, "little") + one[16:]
    with pytest.raises(ValueError, match=r"its notes are \d+ bytes: over"):
        parse_linux_core(io.BytesIO(head + again * count + notes))


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


@pytest.mark.parametrize("wide", [True, False])
def test_a_loaded_program_is_known_by_its_build_id_and_by_where_it_lies(wide):
    program = LoadedProgram(b"\1" * 20, start=0x7F0000, bias=0x7F0000)
    file = io.BytesIO(linux_core(program=program, wide=wide))
    (module,) = loaded_modules(parse_linux_core(file), file)
    assert (module.build_id, module.bias) == ("01" * 20, 0x7F0000)
    assert [module.holds(each) for each in (0x7EFFFF, 0x7F0000, 0x7F1FFF, 0x7F2000)] == [
        False, True, True, False,
    ]  # fmt: skip


@pytest.mark.timeout(30)
def test_a_file_that_is_mapped_as_often_as_the_kernel_permits_is_looked_at_once():
    parts = tuple(MappedFile(at, at + 1, 0, "/dev/shm/buffer") for at in range(65_530))
    assert loaded_modules(LinuxCore("ARM", "modemd", (), 0, (), files=parts), io.BytesIO()) == []
