"""The programs in a Linux core dump, known by their build ids."""

from __future__ import annotations

import io

import pytest
from elf_files import LoadedProgram, linux_core

from agent.observability.coredumps.linux_core import loaded_modules, parse_linux_core


@pytest.mark.parametrize("wide", [True, False])
def test_a_loaded_program_is_known_by_its_build_id_and_by_where_it_lies(wide):
    program = LoadedProgram(b"\1" * 20, start=0x7F0000, bias=0x7F0000)
    file = io.BytesIO(linux_core(program=program, wide=wide))
    (module,) = loaded_modules(parse_linux_core(file), file)
    assert (module.build_id, module.bias) == ("01" * 20, 0x7F0000)
    assert [module.holds(each) for each in (0x7EFFFF, 0x7F0000, 0x7F1FFF, 0x7F2000)] == [
        False, True, True, False,
    ]  # fmt: skip
