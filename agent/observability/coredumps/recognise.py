"""Recognises the kind of a core dump by its first bytes. Pure."""

import re
import shlex
from typing import BinaryIO

from agent.errors import UsageError
from agent.observability.coredumps.device_coredump import MAGIC as DEVICE_MAGIC
from agent.observability.coredumps.elf import ELF, has_symbol_table, read_header
from agent.observability.coredumps.linux_core import is_core
from agent.observability.ingest.uploads import FileKind

_ZEPHYR, _ZEPHYR_PARTITION = b"ZE", b"CD\x01\x00"
ZEPHYR_HEAD = 16
"""Bytes by which a file is known as a Zephyr dump."""
_ZIP = b"PK\x03\x04"
_COMPRESSED = {
    b"\x1f\x8b": "gunzip",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\xfd7zXZ\0": "xz -d",
    b"\x04\x22\x4d\x18": "lz4 -d",
    b"BZh": "bzip2 -d",
    _ZIP: "unzip",
    b"7z\xbc\xaf\x27\x1c": "7z x",
}
"""First bytes -> the command that decompresses the file."""


def is_zephyr_dump(head: bytes) -> bool:
    """Return whether a Zephyr dump, or a partition with one, begins so; a text has no NUL there."""
    if head.startswith(_ZEPHYR_PARTITION):
        return len(head) >= ZEPHYR_HEAD and head[8:10] == b"\0\0"
    return head.startswith(_ZEPHYR) and head[3:4] == b"\0"


def recognise(file: BinaryIO) -> FileKind:
    """Return the kind of a core dump. Raises UsageError when it is none."""
    head = file.read(20)
    name = shlex.quote(str(file.name))
    if head.startswith(DEVICE_MAGIC):
        return FileKind.COREDUMP
    if is_zephyr_dump(head):
        return FileKind.ZEPHYR_COREDUMP
    if head.startswith(ELF):
        if is_core(head):
            return FileKind.ELF_COREDUMP
        raise UsageError(
            f"{file.name}: an ELF file, but no core dump",
            hint=f"symbols are sent with `cellagent report file {name} --kind symbols "
            "--software-type TYPE --software-version VERSION`",
        )
    if head.startswith(_ZIP) and _has_manifest(file):
        return FileKind.MAR
    refuse_compressed(head, file.name)
    raise UsageError(
        f"{file.name}: no core dump of the device SDK, of Zephyr or of Linux",
        hint=f"a console log is read with `cellagent capture coredump {name} --out core.bin`",
    )


_WITHOUT_SYMBOLS = {
    rb":[0-9A-Fa-f]{10}": "in Intel HEX",
    rb"\x3d\xb8\xf3\x96": "an MCUboot image",
    rb"CORE|ZE.\x00|CD\x01\x00": "a core dump",
}
"""How files begin that a build or a crash leaves beside the ELF file."""


def refuse_without_symbols(file: BinaryIO) -> None:
    """Raise UsageError for a file that can hold no symbols, which the service would drop later."""
    head = file.read(20)
    found = [what for start, what in _WITHOUT_SYMBOLS.items() if re.match(start, head)]
    if is_core(head):
        found = ["a core dump"]
    elif header := read_header(head):
        try:
            found = [] if has_symbol_table(file, header) else ["an ELF file that was stripped"]
        except ValueError as damaged:
            found = [f"an ELF file that is damaged ({damaged})"]
    if found:
        raise UsageError(
            f"{file.name}: {found[0]}, which holds no symbols",
            hint="the ELF file of the same build does: build/zephyr/zephyr.elf",
        )


def _has_manifest(file: BinaryIO) -> bool:
    """Return whether a ZIP file is an archive of entries, each in a folder of its own.

    A firmware's bundle has its manifest beside the images; a dump that someone packed has none.
    """
    import zipfile  # which no other form needs

    try:
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith("/manifest.json") for name in archive.namelist())
    # A name that is no UTF-8, or an offset before the file, is a ValueError there.
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        return False


def refuse_compressed(head: bytes, name: str) -> None:
    """Raise UsageError when a file that begins with `head` is compressed."""
    for magic, program in _COMPRESSED.items():
        if head.startswith(magic):
            command = program if name in {"-", "<stdin>"} else f"{program} {shlex.quote(name)}"
            raise UsageError(f"{name}: it is compressed", hint=f"undo that first: `{command}`")
