"""The styles in which programs print bytes in hex."""

import re
from collections.abc import Callable, Iterator

_PAIR = re.compile("....(?=.)")


def _lines(data: bytes) -> Iterator[tuple[int, bytes, str]]:
    """Yield offset, bytes and text of each line of sixteen."""
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        yield at, part, "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)


def _spaced(pair: re.Match[str]) -> str:
    return f"{pair.group()} "


def _zephyr(data: bytes) -> list[str]:
    return [
        f"{part[:8].hex(' ')} {' ' if len(part) > 8 else ''}{part[8:].hex(' '):<24}|"
        f"{text[:8]} {text[8:]}|"
        for _, part, text in _lines(data)
    ]


DUMPS: dict[str, Callable[[bytes], list[str]]] = {
    "Zephyr": _zephyr,
    "xxd": lambda data: [
        f"{at:08x}: {_PAIR.sub(_spaced, part.hex()):<40} {text}" for at, part, text in _lines(data)
    ],
    "hexdump": lambda data: [
        f"{at:08x}  {part.hex(' '):<48} |{text}|" for at, part, text in _lines(data)
    ],
    "pairs": lambda data: [data.hex(" ")],
    "colons": lambda data: [data.hex(":").upper()],
    "dashes": lambda data: [data.hex("-").upper()],
    "C": lambda data: [", ".join(f"0x{byte:02x}" for byte in data)],
}
