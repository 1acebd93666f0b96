"""What every kind of core dump shows alike: a region of memory, a place in the program."""

from __future__ import annotations

from typing import Any


def region(address: int, size: int) -> dict[str, Any]:
    """Return where a region of memory begins, where it ends, and its bytes."""
    return {"start": f"0x{address:08x}", "end": f"0x{address + size:08x}", "bytes": size}


def tell_frame(each: dict[str, Any]) -> str:
    """Return a place in the program for a person: its function and its source line."""
    where = f"{each['file']}:{each['line']}" if each["file"] else "no source line"
    return f"{each['function'] or '?'} ({where})"
