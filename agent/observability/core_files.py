"""Which kind of core dump a file is, by its first bytes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import UsageError
from agent.observability.device_coredump import MAGIC as DEVICE_MAGIC
from agent.observability.linux_core import ELF, is_core
from agent.observability.uploads import FileKind

if TYPE_CHECKING:
    from typing import BinaryIO

_ZEPHYR = b"ZE"
_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"


def recognise(file: BinaryIO) -> FileKind:
    """Return the kind of a core dump. Raises UsageError when it is none."""
    head = file.read(20)
    if head.startswith(DEVICE_MAGIC):
        return FileKind.COREDUMP
    if head.startswith(_ZEPHYR) and head[3:4] == b"\0":
        return FileKind.ZEPHYR_COREDUMP
    if head.startswith(ELF):
        if is_core(head):
            return FileKind.ELF_COREDUMP
        raise UsageError(
            f"{file.name}: an ELF file, but no core dump",
            hint="symbols are sent with `cellagent report file --kind symbols`",
        )
    if head.startswith(_ZIP):
        return FileKind.MAR
    if head.startswith(_GZIP):
        raise UsageError(f"{file.name}: it is compressed", hint="gunzip it first")
    raise UsageError(
        f"{file.name}: no core dump of the device SDK, of Zephyr or of Linux",
        hint="a console log is read with `cellagent capture coredump`",
    )
