"""`cellagent capture`: read, offline, what a kit printed. Needs no kit and no account."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from agent.cli.capture.chunk_sources import read_chunks
from agent.cli.framework.command import OfflineGroup, emit, note, say
from agent.cli.framework.file_type import FILE, OUTPUT_FILE
from agent.cli.framework.saved_text import read_pieces
from agent.errors import AgentError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.cli.framework.session import Session
    from agent.observability.coredumps.symbols import ElfSymbols
    from agent.observability.ingest.chunk_codec import DamagedMessage

_SOURCE = click.argument("source", metavar="FILE|-", type=click.File("rb"))


@click.group(cls=OfflineGroup)
def command() -> None:
    """Read what a kit printed: chunks, messages and core dumps, from a saved console or a pipe."""


@command.command(epilog="Example: cellagent capture chunks console.log")
@_SOURCE
def chunks(_session: Session, source: BinaryIO) -> None:
    """Print each chunk that the console text in FILE holds."""
    from agent.console.chunk_lines import ChunkLine
    from agent.console.line_classifier import ConsoleReader

    reader = ConsoleReader()
    for item in reader.read(read_pieces(source)):
        if isinstance(item, ChunkLine):
            emit({"chunk": item.chunk.hex()})
    counts = reader.counts
    emit({"summary": {"chunks": counts.chunks, "damaged_lines": counts.damaged_chunks}})


@command.command(epilog="Example: cellagent capture messages console.log")
@_SOURCE
def messages(_session: Session, source: BinaryIO) -> None:
    """Put the chunks of FILE together and print each message, opened and decoded.

    FILE is console text, or the lines that `capture chunks` prints.
    """
    from agent.observability.ingest.chunk_codec import Reassembler

    reassembler = Reassembler()
    totals = {"messages": 0, "damaged": 0, "damaged_lines": 0}

    def show(found: Sequence[bytes | DamagedMessage]) -> None:
        for item in found:
            shown = _message(item)
            totals["damaged" if "damaged" in shown else "messages"] += 1
            emit(shown)

    for chunk in read_chunks(source):
        if isinstance(chunk, str):
            totals["damaged_lines"] += 1
            note(f"a chunk is lost: {chunk}")
        else:
            show(reassembler.receive(chunk))
    show(reassembler.finish())
    emit({"summary": totals})


@command.command(epilog="Example: echo 02a702010301 | cellagent capture encode --mtu 80")
@click.option("--mtu", type=int, required=True, metavar="N", help="Bytes of a chunk, 9 or more.")
def encode(_session: Session, mtu: int) -> None:
    """Cut the message on standard input (hex) into chunks, as the device SDK does."""
    from agent.observability.ingest.chunk_codec import encode as cut

    try:
        message = bytes.fromhex(sys.stdin.read())
    except ValueError as exc:
        raise UsageError(
            "what came on standard input is no message in hex digits",
            hint="`cellagent capture messages console.log` prints them",
        ) from exc
    try:
        cut_up = cut(message, mtu)
    except ValueError as exc:
        raise UsageError(str(exc), hint="give `--mtu 9` or more") from exc
    for chunk in cut_up:
        emit({"chunk": chunk.hex()})


@command.command(
    epilog="Example: cellagent capture coredump console.log --out crash.bin --elf zephyr.elf"
)
@_SOURCE
@click.option(
    "--out", type=OUTPUT_FILE, required=True, metavar="OUT", help="Where the first dump goes."
)
@click.option("--elf", type=FILE, help="The firmware's ELF file: names the function that crashed.")
def coredump(session: Session, source: BinaryIO, out: Path, elf: Path | None) -> None:
    """Write the core dumps of the console text in FILE to OUT, OUT.1, OUT.2 ...

    Those of Zephyr, and those of the device SDK, which come in chunks. A dump that is not whole
    goes to OUT.incomplete. Exits 1 if none is usable. FILE may also be a core dump itself: of
    Zephyr, of the device SDK, or of Linux.
    """
    from agent.cli.capture.core_files import (
        describe_core,
        describe_device_core,
        format_core,
        seekable,
    )
    from agent.cli.capture.dump_files import DumpFiles
    from agent.cli.capture.zephyr_dumps import describe_dump, find_dumps, format_dump

    files, source, symbols = DumpFiles(out), seekable(source), _symbols(elf)

    def keep(core: dict[str, Any], data: BinaryIO) -> None:
        core["file"] = str(files.copy(data, usable=core["status"] == "complete"))
        _show(session, core, format_core)

    if (core := describe_core(source, symbols)) is not None:
        keep(core, source)
        if not files.usable:
            raise AgentError("the core dump is not whole", hint=files.advice)
        return
    for captured in find_dumps(read_pieces(source)):
        if isinstance(captured, bytes):
            keep(describe_device_core(captured, symbols), io.BytesIO(captured))
            continue
        path = files.write(captured)
        shown = describe_dump(captured, symbols)
        if path is not None:
            shown["file"] = str(path)
        _show(session, shown, format_dump)
    if not files.usable:
        raise AgentError("no usable core dump was found", hint=files.advice)


def _symbols(elf: Path | None) -> ElfSymbols | None:
    from agent.observability.coredumps.symbols import ElfSymbols

    return None if elf is None else ElfSymbols(elf)


def _show(
    session: Session, shown: dict[str, Any], describe: Callable[[dict[str, Any]], str]
) -> None:
    """Show a dump to a person at a terminal, else to a program."""
    if session.json or not sys.stdout.isatty():
        emit(shown)
    else:
        say(describe(shown))


def _message(item: bytes | DamagedMessage) -> dict[str, Any]:
    from agent.observability.ingest.chunks import kind_of, open_message
    from agent.observability.ingest.event_decode import decode_payload

    if not isinstance(item, bytes):
        return {"damaged": item.reason}
    shown: dict[str, Any] = {"message": item.hex(), "kind": kind_of(item), "decoded": None}
    try:
        opened = open_message(item)
        if opened.kind == "coredump":
            from agent.cli.capture.core_files import device_coredump_summary

            shown["decoded"] = device_coredump_summary(opened.payload)
        else:
            shown["decoded"] = decode_payload(opened)
    except ValueError as exc:
        # Such a message is whole and is forwarded: only we cannot read it.
        shown["error"] = str(exc)
    return shown
