"""Core dumps of the device SDK and of Linux at the command line: recognised and described."""

import shutil
import tempfile
from typing import Any, BinaryIO, cast

from agent.cli.capture.zephyr_dumps import format_frame, region
from agent.errors import AgentError
from agent.observability.coredumps import device_coredump, linux_core
from agent.observability.coredumps.elf import ELF, ElfTruncated
from agent.observability.coredumps.recognise import refuse_compressed
from agent.observability.coredumps.symbols import ElfSymbols


def describe_core(source: BinaryIO, symbols: ElfSymbols | None) -> dict[str, Any] | None:
    """Return what a core dump of the device SDK or of Linux says; None for any other file.

    Raises AgentError for a compressed file, and for an ELF file that is no core dump.
    """
    if not source.seekable():
        return None
    head = source.read(20)
    source.seek(0)
    refuse_compressed(head, source.name)
    if head.startswith(device_coredump.MAGIC):
        return describe_device_core(source.read(), symbols)
    if not head.startswith(ELF):
        return None
    if not linux_core.is_core(head):
        raise AgentError(
            f"{source.name}: an ELF file, but no core dump",
            hint="the firmware's ELF file is given with --elf, beside a dump",
        )
    return _linux_core(source, symbols)


def seekable(source: BinaryIO) -> BinaryIO:
    """Return `source`; a core dump that comes through a pipe is copied to a nameless file first."""
    if source.seekable() or not hasattr(source, "peek"):
        return source
    head = source.peek(20)
    refuse_compressed(head, source.name)
    if not head.startswith((device_coredump.MAGIC, ELF)):
        return source
    # The file has no name and goes with the process.
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(source, file)
    file.seek(0)
    return file


def describe_device_core(data: bytes, symbols: ElfSymbols | None) -> dict[str, Any]:
    """Return what a core dump of the device SDK says, as far as it can be read."""
    shown: dict[str, Any] = {"status": "damaged", "bytes": len(data), "blocks": []}
    shown["unknown_tail"] = False
    try:
        shown |= device_coredump_summary(data)
    except device_coredump.CoredumpTruncated as exc:
        return {**shown, "status": "incomplete", "detail": str(exc)}
    except device_coredump.UnsupportedVersion as exc:
        return {**shown, "status": "unsupported", "detail": str(exc)}
    except ValueError as exc:
        return {**shown, "detail": str(exc)}
    shown["status"] = "complete"
    if symbols is not None:
        shown["elf_build_id"] = symbols.build_id
        shown["elf_matches"] = symbols.build_id == shown["build_id"]
        # Without a build id the ELF file cannot be checked; with another it would name nonsense.
        if shown["elf_matches"] or shown["build_id"] is None:
            found = shown["registers"]
            shown["frames"] = [
                symbols.frame(name, int(found[name], 16)) for name in ("pc", "lr") if name in found
            ]
    return shown


def _linux_core(source: BinaryIO, symbols: ElfSymbols | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": "damaged", "bytes": source.seek(0, 2), "blocks": []}
    shown["unknown_tail"] = False
    source.seek(0)
    try:
        core = linux_core.parse_linux_core(source)
    except ElfTruncated as exc:
        return {**shown, "status": "incomplete", "detail": str(exc)}
    except ValueError as exc:
        return {**shown, "detail": str(exc)}
    shown["status"] = "incomplete" if core.missing else "complete"
    if core.missing:
        shown["detail"] = f"{core.missing} bytes are missing at the end"
    return {
        **shown,
        "target": f"Linux, {core.machine}",
        **core.metadata,
        "command": core.command,
        "signal": core.signal,
        "signal_name": None if core.signal is None else linux_core.SIGNALS.get(core.signal),
        "fault_address": None if core.fault_address is None else f"0x{core.fault_address:x}",
        "threads": [
            {
                "id": thread.id,
                "signal": thread.signal,
                "registers": {name: f"0x{value:x}" for name, value in thread.registers.items()},
            }
            for thread in core.threads
        ],
        "memory": [region(each.address, each.size) for each in core.regions],
        **({} if symbols is None else _linux_frames(core, source, symbols)),
    }


def _linux_frames(
    core: linux_core.LinuxCore, source: BinaryIO, symbols: ElfSymbols
) -> dict[str, Any]:
    """Return where the crashed thread was, if the ELF file is of a build that it had loaded."""
    shown: dict[str, Any] = {"elf_build_id": symbols.build_id, "elf_matches": False}
    for module in linux_core.loaded_modules(core, source):
        if module.build_id != symbols.build_id:
            continue
        found = core.threads[0].registers if core.threads else {}
        shown |= {"elf_matches": True, "module": module.name}
        shown["frames"] = [
            symbols.frame(name, found[name] - module.bias)
            for name in (*linux_core.PROGRAM_COUNTERS, *linux_core.LINKS)
            if name in found and module.holds(found[name])
        ]
    return shown


def format_core(shown: dict[str, Any]) -> str:
    """Return what `describe_core` returns as lines for a person."""
    lines = [f"core dump: {shown['status']}, {shown['bytes']} bytes"]
    for name, value in shown.items():
        if name in {"status", "bytes", "blocks", "unknown_tail"} or value in (None, [], {}, ""):
            continue
        if name == "threads":
            lines += [_format_thread(thread) for thread in value]
        elif name == "frames":
            lines += [f"  {each['register']:17} {format_frame(each)}" for each in value]
        elif name == "registers":
            lines.append(f"  {name:17} {'  '.join(f'{each} {value[each]}' for each in value)}")
        elif name == "memory":
            lines += [
                f"  memory            {each['start']}..{each['end']}  {each['bytes']} bytes"
                for each in value
            ]
        else:
            lines.append(f"  {name:17} {value}")
    return "\n".join(lines)


def _format_thread(thread: dict[str, Any]) -> str:
    shown = [
        f"{name} {value}"
        for name, value in thread["registers"].items()
        if name in linux_core.PROGRAM_COUNTERS or name in linux_core.STACK_POINTERS
    ]
    return f"  {'thread':17} {thread['id']:<8} {'  '.join(shown)}".rstrip()


def device_coredump_summary(payload: bytes) -> dict[str, Any]:
    """Return what a device coredump of a chunk message says. Raises ValueError."""
    core = device_coredump.parse_device_coredump(payload)
    return {
        "bytes": core.size,
        "machine": core.machine,
        "reason": core.reason,
        **core.identity,
        "build_id": core.build_id,
        "truncated": core.truncated,
        "registers": {name: f"0x{value:08x}" for name, value in core.registers.items()},
        "memory": [region(each.address, each.size) for each in core.memory],
    }
