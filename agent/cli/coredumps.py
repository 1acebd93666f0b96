"""Core dumps at the command line: found in a console or a file, written, told to a person."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from agent.console.dump_lines import CapturedDump
from agent.console.zephyr_coredump import (
    MAGIC,
    Dump,
    kernel_words,
    parse_dump,
    reason_name,
    registers,
    target_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.console.reader import ConsoleItem

_DEVICE_CORE = b"CORE"
_ELF = b"\x7fELF"


def find_dumps(pieces: Iterable[bytes]) -> Iterator[CapturedDump]:
    """Yield the dumps of console text; a file that is itself a Zephyr dump is the only one."""
    from agent.console.reader import ConsoleReader

    def dumps(items: list[ConsoleItem]) -> Iterator[CapturedDump]:
        return (item for item in items if isinstance(item, CapturedDump))

    reader = ConsoleReader()
    source = iter(pieces)
    head = b""
    while len(head) < 4 and (piece := next(source, b"")):
        head += piece
    if head.startswith(MAGIC) and head[3:4] == b"\0":  # no console text holds a NUL there
        data = bytearray(head)
        for piece in source:
            data += piece
        yield CapturedDump(data, parse_dump(data))
        return
    yield from dumps(reader.receive(head))
    for piece in source:
        yield from dumps(reader.receive(piece))
    yield from dumps(reader.finish())


class DumpFiles:
    """Names and writes the files of the dumps: OUT, OUT.1 ... and OUT.incomplete, 0600."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.usable = 0
        self.others = 0

    @classmethod
    def unused(cls, out: Path) -> DumpFiles:
        """Return names behind those that are taken, so that nothing of an earlier run goes."""
        files = cls(out)
        while files._usable_path().exists():
            files.usable += 1
        while files._other_path().exists():
            files.others += 1
        return files

    @property
    def advice(self) -> str:
        """What to try when no dump was usable."""
        if self.others:
            return f"{self.others} cannot be used; what was heard is in {self.out}.incomplete"
        return "the kit prints one with CONFIG_DEBUG_COREDUMP, or on `coredump print`"

    def copy(self, source: BinaryIO, *, usable: bool) -> Path:
        """Write a file that is a dump itself, however large."""
        path = self._usable_path() if usable else self._other_path()
        self.usable, self.others = self.usable + usable, self.others + (not usable)
        source.seek(0)
        with _private(path) as file:
            shutil.copyfileobj(source, file)
        return path

    def write(self, captured: CapturedDump) -> Path | None:
        """Write one dump; return where it is, None when it has no bytes."""
        if captured.dump.usable:
            path = self._usable_path()
            self.usable += 1
        else:
            path = self._other_path()
            self.others += 1
        if not captured.data:
            return None
        with _private(path) as file:
            file.write(captured.data)
        return path

    def _usable_path(self) -> Path:
        return Path(f"{self.out}.{self.usable}" if self.usable else self.out)

    def _other_path(self) -> Path:
        return Path(f"{self.out}.incomplete" + (f".{self.others}" if self.others else ""))


def _private(path: Path) -> BinaryIO:
    # Memory of a device holds what it was told in confidence: private from the first moment.
    if path.is_file():
        path.unlink()  # its mode may be another
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb")


def other_core(source: BinaryIO, elf: Path | None) -> dict[str, Any] | None:
    """Describe a file that is a core dump of the device SDK or of Linux; None for any other."""
    if not source.seekable():
        return None
    head = source.read(4)
    source.seek(0)
    if head == _DEVICE_CORE:
        return _device_core(source.read(), elf)
    return _linux_core(source) if head == _ELF else None


def spooled(source: BinaryIO) -> BinaryIO:
    """Return `source`; what comes through a pipe and is one core dump goes to a file first."""
    if source.seekable() or not hasattr(source, "peek"):
        return source
    if source.peek(4)[:4] not in {_DEVICE_CORE, _ELF}:
        return source
    # The file has no name and goes with the process.
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(source, file)
    file.seek(0)
    return file


def _device_core(data: bytes, elf: Path | None) -> dict[str, Any]:
    from agent.observability.device_coredump import CutShort, OtherVersion

    shown: dict[str, Any] = {"status": "damaged", "bytes": len(data), "blocks": []}
    shown["unknown_tail"] = False
    try:
        shown |= device_coredump_summary(data)
    except CutShort as exc:
        return {**shown, "status": "incomplete", "detail": str(exc)}
    except OtherVersion as exc:
        return {**shown, "status": "unsupported", "detail": str(exc)}
    except ValueError as exc:
        return {**shown, "detail": str(exc)}
    shown["status"] = "complete"
    if elf is not None:
        from agent.observability.symbols import ElfSymbols

        shown["elf_build_id"] = ElfSymbols(elf).build_id
        shown["elf_matches"] = shown["elf_build_id"] == shown["build_id"]
    return shown


def _linux_core(source: BinaryIO) -> dict[str, Any]:
    from agent.observability.linux_core import SIGNALS, parse_linux_core

    shown: dict[str, Any] = {"status": "damaged", "bytes": source.seek(0, 2), "blocks": []}
    shown["unknown_tail"] = False
    source.seek(0)
    try:
        core = parse_linux_core(source)
    except ValueError as exc:
        return {**shown, "detail": str(exc)}
    shown["status"] = "incomplete" if core.missing else "complete"
    if core.missing:
        shown["detail"] = f"{core.missing} bytes are missing at the end"
    return {
        **shown,
        "target": f"Linux, {core.machine}",
        "command": core.command,
        "signal": core.signal,
        "signal_name": None if core.signal is None else SIGNALS.get(core.signal),
        "threads": [
            {
                "id": thread.id,
                "signal": thread.signal,
                "registers": {name: f"0x{value:x}" for name, value in thread.registers.items()},
            }
            for thread in core.threads
        ],
        "memory": [_region(address, size) for address, size in core.regions],
    }


def tell_core(shown: dict[str, Any]) -> str:
    """Return a dump that `other_core` described as lines for a person."""
    lines = [f"core dump: {shown['status']}, {shown['bytes']} bytes"]
    for name, value in shown.items():
        if name in {"status", "bytes", "blocks", "unknown_tail"} or value in (None, [], ""):
            continue
        if name == "threads":
            lines += [_tell_thread(thread) for thread in value]
        elif name == "memory":
            lines += [
                f"  memory            {each['start']}..{each['end']}  {each['bytes']} bytes"
                for each in value
            ]
        else:
            lines.append(f"  {name:17} {value}")
    return "\n".join(lines)


def _tell_thread(thread: dict[str, Any]) -> str:
    from agent.observability.linux_core import PROGRAM_COUNTERS, STACK_POINTERS

    shown = [
        f"{name} {value}"
        for name, value in thread["registers"].items()
        if name in PROGRAM_COUNTERS or name in STACK_POINTERS
    ]
    return f"  {'thread':17} {thread['id']:<8} {'  '.join(shown)}".rstrip()


def _region(address: int, size: int) -> dict[str, Any]:
    return {"start": f"0x{address:08x}", "end": f"0x{address + size:08x}", "bytes": size}


def describe_dump(captured: CapturedDump, elf: Path | None = None) -> dict[str, Any]:
    """Return what a program wants to know about a dump."""
    dump = captured.dump
    shown: dict[str, Any] = {
        "status": dump.status.value,
        "bytes": dump.size,
        "blocks": [block.id for block in dump.blocks],
        "unknown_tail": dump.unknown_tail,
    }
    if dump.detail:
        shown["detail"] = dump.detail
    if dump.header is None:
        return shown
    shown |= {
        "version": dump.header.version,
        "target": target_name(dump.header),
        "reason": reason_name(dump.header),
        "reason_code": dump.header.reason,
        "registers": {name: f"0x{value:08x}" for name, value in _registers(captured).items()},
        "memory": _memory_map(dump),
        "kernel": _kernel(captured),
    }
    if elf is not None:
        from agent.observability.symbols import ElfSymbols

        symbols = ElfSymbols(elf)
        found = _registers(captured)
        # A Zephyr dump does not say which build it comes from: the ELF file cannot be checked.
        shown["elf_build_id"] = symbols.build_id
        shown["frames"] = [
            {"register": name, **asdict(symbols.locate(found[name]))}
            for name in ("pc", "lr")
            if name in found
        ]
    return shown


def tell_dump(shown: dict[str, Any]) -> str:
    """Return a dump as lines for a person."""
    lines = [f"core dump: {shown['status']}, {shown['bytes']} bytes"]
    if "detail" in shown:
        lines.append(f"  {shown['detail']}")
    if "target" in shown:
        lines += [f"  target   {shown['target']}", f"  reason   {shown['reason']}"]
    for frame in shown.get("frames", ()):
        where = f"{frame['file']}:{frame['line']}" if frame["file"] else "no source line"
        lines.append(f"  {frame['register']:8} {frame['function'] or '?'} ({where})")
    pairs = [f"{name} {value}" for name, value in shown.get("registers", {}).items()]
    lines += [
        "  " + "  ".join(f"{pair:16}" for pair in pairs[at : at + 4]).rstrip()
        for at in range(0, len(pairs), 4)
    ]
    lines += [
        f"  memory   {region['start']}..{region['end']}  {region['bytes']} bytes"
        for region in shown.get("memory", ())
    ]
    if kernel := shown.get("kernel"):
        inside = "  ".join(kernel["into_memory"]) or "none"
        lines.append(f"  kernel   {kernel['words']} words; into this memory: {inside}")
    if "file" in shown:
        lines.append(f"  file     {shown['file']}")
    return "\n".join(lines)


def device_coredump_summary(payload: bytes) -> dict[str, Any]:
    """Return what a device coredump of a chunk message says. Raises ValueError."""
    from agent.observability.device_coredump import parse_device_coredump

    core = parse_device_coredump(payload)
    return {
        "bytes": core.size,
        "machine": core.machine,
        "reason": core.reason,
        **core.identity,
        "build_id": core.build_id,
        "truncated": core.truncated,
        "memory": [_region(region.address, region.size) for region in core.memory],
    }


def _registers(captured: CapturedDump) -> dict[str, int]:
    return registers(captured.dump, captured.data)


def _kernel(captured: CapturedDump) -> dict[str, Any] | None:
    """Return what can be known of the kernel's own words (block T), None without them.

    Their layout is the build's: what is sure is which of them point into the memory of the dump.
    """
    words = kernel_words(captured.dump, captured.data)
    if words is None:
        return None
    memory = [(each.address, each.size) for each in captured.dump.blocks if each.id == "M"]
    inside = [
        f"0x{word:08x}"
        for word in dict.fromkeys(words)
        if any(start is not None and start <= word < start + size for start, size in memory)
    ]
    return {"words": len(words), "into_memory": inside}


def _memory_map(dump: Dump) -> list[dict[str, Any]]:
    return [
        _region(block.address, block.size) for block in dump.blocks if block.address is not None
    ]
