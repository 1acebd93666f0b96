"""The table of a Zephyr firmware that says where its kernel keeps what of its threads.

CONFIG_DEBUG_THREAD_INFO of Zephyr (subsys/debug/thread_info.c); older kernels call the same
symbols `_kernel_openocd_...`.
"""

from __future__ import annotations

from typing import Any

_PREFIXES = ("_kernel_thread_info_", "_kernel_openocd_")
_MOST = 64
"""Entries of the table; it has 15."""
_OLDEST = 9
"""Entries of the oldest table, which does not say how many it has."""


def thread_table(elf: Any) -> tuple[tuple[int, ...], int] | None:
    """Return the table of an open ELF file and the bytes of a pointer; None where it has none."""
    table = elf.get_section_by_name(".symtab")
    if table is None:
        return None
    for prefix in _PREFIXES:
        size = _bytes(elf, table, f"{prefix}size_t_size", 1)
        if size is None or size[0] not in (4, 8):
            continue
        word = size[0]
        number = _bytes(elf, table, f"{prefix}num_offsets", word)
        count = min(int.from_bytes(number, "little"), _MOST) if number else _OLDEST
        offsets = _bytes(elf, table, f"{prefix}offsets", count * word)
        if offsets is not None:
            words = (offsets[at : at + word] for at in range(0, len(offsets), word))
            return tuple(int.from_bytes(each, "little") for each in words), word
    return None


def _bytes(elf: Any, table: Any, name: str, size: int) -> bytes | None:
    """Return what the file holds at a symbol; None without the symbol or its bytes."""
    symbols = table.get_symbol_by_name(name)
    if not symbols or not isinstance(symbols[0]["st_shndx"], int):
        return None
    section = elf.get_section(symbols[0]["st_shndx"])
    at = symbols[0]["st_value"] - section["sh_addr"]
    found: bytes = section.data()[at : at + size] if at >= 0 else b""
    return found if len(found) == size else None
