"""Zephyr core dumps of `cellagent capture coredump`: the function and the threads at fault."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from agent.cli.capture.zephyr_dumps import format_dump
from tests.support.commands.command_line import with_bytes
from tests.support.dumps.elf_files import firmware
from tests.support.dumps.zephyr_dumps import (
    OFFSETS,
    Thread,
    arch,
    header,
    kernel,
    memory,
    partition,
    printed,
    table,
    threads,
)

DUMP = header() + arch() + memory(0x20000000, bytes(100))


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    return with_bytes("capture", *arguments, stdin=stdin)


@pytest.mark.parametrize("file", [DUMP, partition(DUMP)])
def test_a_binary_dump_is_taken_as_one(tmp_path: Path, file: bytes):
    out = tmp_path / "copy.bin"
    code, (line,), _ = capture("coredump", "-", "--out", str(out), stdin=file)
    assert (code, line["status"], out.read_bytes()) == (0, "complete", DUMP)


def test_the_function_at_fault_is_named_when_the_firmware_is_given(tmp_path: Path):
    elf = tmp_path / "zephyr.elf"
    elf.write_bytes(firmware({"main": (0x100, 0x40)}))
    out = tmp_path / "crash.bin"
    _, (line,), _ = capture(
        "coredump", "-", "--out", str(out), "--elf", str(elf), stdin=printed(DUMP)
    )
    assert [(frame["register"], frame["function"]) for frame in line["frames"]] == [
        ("pc", "main"),
        ("lr", "main"),
    ]


@pytest.mark.parametrize(
    ("function", "file", "says"),
    [("main", "main.c", "main (main.c:12)"), (None, None, "? (no source line)")],
)
def test_a_frame_is_its_function_and_its_line(function: str | None, file: str | None, says: str):
    frame = {"register": "pc", "function": function, "file": file, "line": 12}
    shown = {"status": "complete", "bytes": 100, "frames": [frame]}
    assert f"  pc       {says}" in format_dump(shown).splitlines()


def test_the_kernels_own_words_are_told_that_point_into_the_memory(tmp_path: Path):
    words = 0x2000_0064, 0x2000_0063, 0x2000_0000, 0x1FFF_FFFF, 0x2000_0063
    dump = header() + arch() + threads(struct.pack("<5I", *words)) + memory(0x2000_0000, bytes(100))
    out = str(tmp_path / "crash.bin")
    _, (line,), _ = capture("coredump", "-", "--out", out, stdin=dump)
    assert line["kernel"] == {"words": 5, "into_memory": ["0x20000063", "0x20000000"]}
    assert "kernel   5 words; into this memory: 0x20000063  0x20000000" in format_dump(line)


def dump_with_threads(tmp_path: Path, *options: str) -> dict[str, object]:
    listed = [Thread("main", entry=0x101), Thread("idle", 0x80, 15, pc=0x208, entry=0x201)]
    text = printed(header() + arch() + kernel(listed))
    out = str(tmp_path / "crash.bin")
    _, (line,), _ = capture("coredump", "-", "--out", out, *options, stdin=text)
    return line


@pytest.mark.parametrize("prefix", ["_kernel_thread_info_", "_kernel_openocd_"])
def test_the_threads_are_told_when_the_firmware_is_given(tmp_path: Path, prefix: str):
    elf = tmp_path / "zephyr.elf"
    functions = {"main": (0x100, 0x40), "idle": (0x200, 0x40)}
    elf.write_bytes(firmware(functions, objects=table(prefix=prefix)))
    line = dump_with_threads(tmp_path, "--elf", str(elf))
    assert "threads_detail" not in line
    assert line["threads"] == [
        {
            "address": "0x20001000",
            "current": True,
            "name": "main",
            "states": ["ready"],
            "priority": 0,
            "entry": "main",
            "stack_pointer": "0x20008000",
            "pc": None,
            "function": None,
        },
        {
            "address": "0x200010a0",
            "current": False,
            "name": "idle",
            "states": ["ready"],
            "priority": 15,
            "entry": "idle",
            "stack_pointer": "0x20008040",
            "pc": "0x00000208",
            "function": "idle",
        },
    ]


def test_without_the_firmware_the_threads_are_said_to_need_it(tmp_path: Path):
    assert "--elf" in str(dump_with_threads(tmp_path)["threads_detail"])
    elf = tmp_path / "zephyr.elf"
    elf.write_bytes(firmware({"main": (0x100, 0x40)}))
    told = dump_with_threads(tmp_path, "--elf", str(elf))
    assert "CONFIG_DEBUG_THREAD_INFO" in str(told["threads_detail"])
    elf.write_bytes(firmware({"main": (0x100, 0x40)}, objects=table((7, *OFFSETS[1:]))))
    told = dump_with_threads(tmp_path, "--elf", str(elf))
    assert "version" in str(told["threads_detail"])
