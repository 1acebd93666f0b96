"""A small ELF file written by hand: an ARM program with debug information and a build id."""

import struct

BUILD_ID = bytes(range(20))
_HEADER_BYTES, _SECTION_BYTES = 52, 40
_PROGBITS, _STRTAB, _NOTE, _SYMTAB = 1, 3, 7, 2


def small_elf(build_id: bytes = BUILD_ID) -> bytes:
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
    sections = [
        (b"", 0, b"", 0, 0),
        (b".text", _PROGBITS, bytes(16), 0, 0),
        (b".note.gnu.build-id", _NOTE, note, 0, 0),
        (b".debug_info", _PROGBITS, bytes(11), 0, 0),
        (b".debug_abbrev", _PROGBITS, bytes(1), 0, 0),
        (b".symtab", _SYMTAB, bytes(16), 6, 16),
        (b".strtab", _STRTAB, b"\0", 0, 0),
    ]
    names = b"".join(name + b"\0" for name, *_ in sections) + b".shstrtab\0"
    sections.append((b".shstrtab", _STRTAB, names, 0, 0))
    body, table, at = b"", b"", 0
    for name, kind, content, link, entry in sections:
        offset = _HEADER_BYTES + len(body) if kind else 0
        table += struct.pack(
            "<IIIIIIIIII", at, kind, 2 if kind in (_PROGBITS, _NOTE) else 0, 0,
            offset, len(content), link, 0, 4 if kind else 0, entry,
        )  # fmt: skip
        at += len(name) + 1
        body += content.ljust(-(-len(content) // 4) * 4, b"\0")
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, 0, 0, _HEADER_BYTES + len(body), 0x05000200,
        _HEADER_BYTES, 32, 0, _SECTION_BYTES, len(sections), len(sections) - 1,
    )  # fmt: skip
    return header + body + table
