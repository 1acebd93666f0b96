"""Zephyr core dumps at the command line: found in a console or a file, and described."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from agent.console import zephyr_coredump
from agent.console.dump_lines import CapturedDump
from agent.console.zephyr_registers import frame_registers, registers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.console.zephyr_threads import ZephyrThread
    from agent.observability.coredumps.symbols import ElfSymbols
    from agent.observability.ingest.chunk_codec import DamagedMessage


def find_dumps(pieces: Iterable[bytes]) -> Iterator[CapturedDump | bytes]:
    """Yield the dumps of console text; a file that is itself a Zephyr dump is the only one.

    One of the device SDK, which comes in chunks, is yielded as its bytes.
    """
    from agent.cli.capture.chunk_sources import chunks_and_dumps
    from agent.console.dump_file import read_dump_file
    from agent.observability.coredumps.recognise import ZEPHYR_HEAD, is_zephyr_dump
    from agent.observability.ingest.chunk_codec import Reassembler

    source = iter(pieces)
    head = b""
    while len(head) < ZEPHYR_HEAD and (piece := next(source, b"")):
        head += piece
    if is_zephyr_dump(head):
        data = bytearray(head)
        for piece in source:
            data += piece
        yield read_dump_file(data)
        return
    messages = Reassembler()
    for item in chunks_and_dumps(chain([head], source)):
        if isinstance(item, CapturedDump):
            yield item
        elif isinstance(item, bytes):
            yield from _device_cores(messages.receive(item))


def _device_cores(found: Iterable[bytes | DamagedMessage]) -> Iterator[bytes]:
    from agent.observability.ingest.chunks import kind_of, open_message

    for message in found:
        if isinstance(message, bytes) and kind_of(message) == "coredump":
            try:
                yield open_message(message).payload
            except ValueError:
                yield message  # as it came: what reads it says that it is damaged


def describe_dump(captured: CapturedDump, symbols: ElfSymbols | None) -> dict[str, Any]:
    """Return what a dump says, as a JSON object; `symbols` are its firmware's."""
    dump = captured.dump
    shown: dict[str, Any] = {
        "status": dump.status.value,
        "bytes": dump.size,
        "blocks": [block.id for block in dump.blocks],
        "unknown_tail": dump.unknown_tail,
    }
    if dump.detail:
        shown["detail"] = dump.detail
    if dump.dropped_messages:
        shown["dropped_messages"] = dump.dropped_messages
    if dump.header is None:
        return shown
    found = registers(dump, captured.data)
    digits = dump.header.pointer_bits // 4
    shown |= {
        "version": dump.header.version,
        "target": zephyr_coredump.target_name(dump.header),
        "reason": zephyr_coredump.reason_name(dump.header),
        "reason_code": dump.header.reason,
        "registers": {name: f"0x{value:0{digits}x}" for name, value in found.items()},
        "memory": _memory_map(dump),
        "kernel": _kernel(captured),
    }
    if symbols is not None:
        # A Zephyr dump does not say which build it comes from: the ELF file cannot be checked.
        shown["elf_build_id"] = symbols.build_id
        shown["frames"] = [
            symbols.frame(name, address)
            for name, address in frame_registers(found).items()
            if name != "sp"
        ]
    return shown | _threads(captured, symbols)


def _threads(captured: CapturedDump, symbols: ElfSymbols | None) -> dict[str, Any]:
    """Return the threads of a dump, and the reason why some or all of them are not known."""
    from agent.console.zephyr_threads import ThreadLayout, read_threads

    if captured.dump.block("T") is None:
        return {}
    if symbols is None:
        return {"threads_detail": "their names and states need the firmware's ELF file (--elf)"}
    if symbols.thread_table is None:
        return {"threads_detail": "the firmware is built without CONFIG_DEBUG_THREAD_INFO"}
    try:
        layout = ThreadLayout(*symbols.thread_table)
    except ValueError as exc:
        return {"threads_detail": str(exc)}
    listed = read_threads(captured.dump, captured.data, layout)
    return {
        "threads": [_thread(thread, symbols) for thread in listed.threads],
        **({"threads_detail": listed.detail} if listed.detail else {}),
    }


def _thread(thread: ZephyrThread, symbols: ElfSymbols) -> dict[str, Any]:
    def function(address: int | None) -> str | None:
        return None if address is None else symbols.locate(address).function

    return {
        "address": f"0x{thread.address:08x}",
        "current": thread.current,
        "name": thread.name,
        "states": None if thread.states is None else list(thread.states),
        "priority": thread.priority,
        "entry": function(thread.entry),
        "stack_pointer": _hex(thread.stack_pointer),
        "pc": _hex(thread.pc),
        "function": function(thread.pc),
    }


def _hex(value: int | None) -> str | None:
    return None if value is None else f"0x{value:08x}"


def format_dump(shown: dict[str, Any]) -> str:
    """Return a dump as lines for a person."""
    lines = [f"core dump: {shown['status']}, {shown['bytes']} bytes"]
    if "detail" in shown:
        lines.append(f"  {shown['detail']}")
    if "target" in shown:
        lines += [f"  target   {shown['target']}", f"  reason   {shown['reason']}"]
    for each in shown.get("frames", ()):
        lines.append(f"  {each['register']:8} {format_frame(each)}")
    pairs = [f"{name} {value}" for name, value in shown.get("registers", {}).items()]
    lines += [
        "  " + "  ".join(f"{pair:16}" for pair in pairs[at : at + 4]).rstrip()
        for at in range(0, len(pairs), 4)
    ]
    lines += [
        f"  memory   {each['start']}..{each['end']}  {each['bytes']} bytes"
        for each in shown.get("memory", ())
    ]
    if kernel := shown.get("kernel"):
        inside = "  ".join(kernel["into_memory"]) or "none"
        lines.append(f"  kernel   {kernel['words']} words; into this memory: {inside}")
    lines += [f"  thread   {_format_thread(thread)}" for thread in shown.get("threads", ())]
    if "threads_detail" in shown:
        lines.append(f"  threads  {shown['threads_detail']}")
    if "file" in shown:
        lines.append(f"  file     {shown['file']}")
    return "\n".join(lines)


def _format_thread(thread: dict[str, Any]) -> str:
    name = thread["name"] or thread["entry"] or thread["address"]
    parts = [f"{'*' if thread['current'] else ' '} {name:20}"]
    if thread["states"] is not None:
        parts.append(", ".join(thread["states"]) or "running")
    if thread["priority"] is not None:
        parts.append(f"priority {thread['priority']}")
    if thread["stack_pointer"] is not None:
        parts.append(f"sp {thread['stack_pointer']}")
    if thread["function"] is not None:
        parts.append(f"in {thread['function']}")
    if thread["states"] is None:
        parts.append("not in the dump")
    return "  ".join(parts).rstrip()


def _kernel(captured: CapturedDump) -> dict[str, Any] | None:
    """Return what can be known of the kernel's own words (block T), None without them.

    Their layout is the build's: what is sure is which of them point into the memory of the dump.
    """
    words = zephyr_coredump.kernel_words(captured.dump, captured.data)
    if words is None:
        return None
    blocks = captured.dump.blocks
    memory = [(each.address, each.size) for each in blocks if each.address is not None]
    inside = [
        f"0x{word:08x}"
        for word in dict.fromkeys(words)
        if any(start <= word < start + size for start, size in memory)
    ]
    return {"words": len(words), "into_memory": inside}


def _memory_map(dump: zephyr_coredump.Dump) -> list[dict[str, Any]]:
    return [region(block.address, block.size) for block in dump.blocks if block.address is not None]


def region(address: int, size: int) -> dict[str, Any]:
    """Return a region of memory as a JSON object: start and end in hex, and its size in bytes."""
    return {"start": f"0x{address:08x}", "end": f"0x{address + size:08x}", "bytes": size}


def format_frame(each: dict[str, Any]) -> str:
    """Return a stack frame for a person: its function and its source line."""
    where = f"{each['file']}:{each['line']}" if each["file"] else "no source line"
    return f"{each['function'] or '?'} ({where})"
