"""Symbols of a firmware's ELF file: names and lines of addresses (extra `coredump`: pyelftools)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import AgentError
from agent.extras import require
from agent.observability.coredumps.linux_core import LINKS

if TYPE_CHECKING:
    from elftools.dwarf.lineprogram import LineProgram, LineState
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

_PREFIXES = ("_kernel_thread_info_", "_kernel_openocd_")
_MAX_ENTRIES = 64
"""Entries of the table; it has 15."""
_OLDEST_ENTRIES = 9
"""Entries of the oldest table, which does not say how many it has."""


def thread_table(elf: ELFFile) -> tuple[tuple[int, ...], int] | None:
    """Return the table of an open ELF file and the bytes of a pointer; None where it has none."""
    table = _symbol_table(elf)
    if table is None:
        return None
    for prefix in _PREFIXES:
        size = _bytes(elf, table, f"{prefix}size_t_size", 1)
        if size is None or size[0] not in (4, 8):
            continue
        word = size[0]
        number = _bytes(elf, table, f"{prefix}num_offsets", word)
        count = min(int.from_bytes(number, "little"), _MAX_ENTRIES) if number else _OLDEST_ENTRIES
        offsets = _bytes(elf, table, f"{prefix}offsets", count * word)
        if offsets is not None:
            words = (offsets[at : at + word] for at in range(0, len(offsets), word))
            return tuple(int.from_bytes(each, "little") for each in words), word
    return None


def _symbol_table(elf: ELFFile) -> SymbolTableSection | None:
    from elftools.elf.sections import SymbolTableSection

    table = elf.get_section_by_name(".symtab")
    return table if isinstance(table, SymbolTableSection) else None


def _bytes(elf: ELFFile, table: SymbolTableSection, name: str, size: int) -> bytes | None:
    """Return what the file holds at a symbol; None without the symbol or its bytes."""
    symbols = table.get_symbol_by_name(name)
    if not symbols or not isinstance(symbols[0]["st_shndx"], int):
        return None
    section = elf.get_section(symbols[0]["st_shndx"])
    at = symbols[0]["st_value"] - section["sh_addr"]
    content: bytes = section.data()[at : at + size] if at >= 0 else b""
    return content if len(content) == size else None


_THUMB_BIT = 1


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """The function and the line of an address; None for what the file does not say."""

    address: int
    function: str | None
    offset: int | None
    """Bytes from the function's beginning."""
    file: str | None
    line: int | None


class ElfSymbols:
    """The functions, source lines and build id of one ELF file.

    Raises MissingExtra, AgentError when the file is no ELF, is damaged or was stripped.
    """

    def __init__(self, path: Path) -> None:
        require("an ELF file with symbols", "elftools")
        from elftools.elf.elffile import ELFFile

        with path.open("rb") as file:
            try:
                elf = ELFFile(file)
                self.machine: str = elf["e_machine"]
                self.build_id = _build_id(elf)
                self.thread_table = thread_table(elf)
                """The layout of a Zephyr kernel's threads, as `thread_table` returns it."""
                self._functions = _functions(elf)
                self._lines: list[tuple[int, int, str, int]] = []
                # Compressed in a way, or of a version, that pyelftools does not know: it raises
                # what it does on a damaged file, and functions are known without.
                with suppress(Exception):
                    self._lines = _lines(elf, any(not start for start, *_ in self._functions))
            # On a damaged file pyelftools raises errors without a common base: its own, those of
            # struct, zlib and seek, IndexError, MemoryError ...
            except Exception as exc:
                raise AgentError(f"{path} is no ELF file, or is damaged: {exc}") from exc
        if not self._functions:
            raise AgentError(
                f"{path} holds no symbols: it was stripped",
                hint="the ELF file as it was linked does: build/zephyr/zephyr.elf",
            )

    def frame(self, register: str, address: int) -> dict[str, object]:
        """Return what is known of the address in a register, as a JSON object."""
        location = self.locate(address, returned_to=register in LINKS)
        return {"register": register, **asdict(location)}

    def locate(self, address: int, *, returned_to: bool = False) -> SourceLocation:
        """Return function and line of `address`; the Thumb bit of an ARM address is ignored.

        Of one that a call returns to, those of the call: right behind it begins the next line, and
        behind the last one of a function, which does not return, the next function.
        """
        if self.machine == "EM_ARM":
            address &= ~_THUMB_BIT
        within = address - returned_to
        name, offset = None, None
        for start, size, function in self._functions:
            if start <= within < start + max(size, 1):
                name, offset = function, address - start
                break
        file, line = None, None
        for start, end, row_file, row_line in self._lines:
            if start <= within < end:
                file, line = row_file, row_line
                break
        return SourceLocation(address, name, offset, file, line)


_PATCHED = b"\3"  # the kind of such an id


def _build_id(elf: ELFFile) -> str | None:
    """Return the id of a build in hex: what the device SDK's script patched in, else the linker's.

    A firmware in which the SDK uses the linker's has no such symbol, or one of another kind.
    """
    from elftools.elf.sections import NoteSection

    table = _symbol_table(elf)
    if (
        table is not None
        and _bytes(elf, table, "g_memfault_build_id", 1) == _PATCHED
        and (patched := _bytes(elf, table, "g_memfault_sdk_derived_build_id", 20))
    ):
        return patched.hex()
    section = elf.get_section_by_name(".note.gnu.build-id")
    for notes in [section] if section is not None else elf.iter_sections(type="SHT_NOTE"):
        for note in notes.iter_notes() if isinstance(notes, NoteSection) else ():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    return None


def _functions(elf: ELFFile) -> list[tuple[int, int, str]]:
    table = _symbol_table(elf)
    if table is None:
        return []
    thumb = ~_THUMB_BIT if elf["e_machine"] == "EM_ARM" else ~0
    return [
        (symbol["st_value"] & thumb, symbol["st_size"], symbol.name)
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
    ]


def _lines(elf: ELFFile, code_at_zero: bool) -> list[tuple[int, int, str, int]]:
    """Return (first address, end, file, line) of every row of the line tables.

    Those of what the linker left out seem to begin at address 0; those of line 0 have no line.
    """
    rows: list[tuple[int, int, str, int]] = []
    if not elf.has_dwarf_info():
        return rows
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1
        for start, end in _ranges(program, code_at_zero):
            index = start.file - first
            if start.line and 0 <= index < len(files):
                name = files[index].name.decode("utf-8", "backslashreplace")
                rows.append((start.address, end, name, start.line))
    return rows


def _ranges(program: LineProgram, code_at_zero: bool) -> Iterator[tuple[LineState, int]]:
    """Give each row of a line table that has bytes, and the address where the next one begins."""
    before, left_out = None, False
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is None:
            left_out = state.address == 0 and not code_at_zero
        elif before.address < state.address and not left_out:
            yield before, state.address
        before = None if state.end_sequence else state
