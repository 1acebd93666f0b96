"""Core dumps of the device SDK and of Linux, given to `cellagent capture coredump`."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.support.commands.command_line import with_bytes
from tests.support.dumps import sdk_bytes
from tests.support.dumps.elf_files import LoadedProgram, firmware, linux_core
from tests.support.dumps.zephyr_dumps import arch, header, printed


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    return with_bytes("capture", *arguments, stdin=stdin)


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd\0", b"\xfd7zXZ\0\0", b"\x04\x22\x4d\x18\0"],
    ids=["gzip", "zstd", "xz", "lz4"],
)
@pytest.mark.parametrize("piped", [True, False], ids=["pipe", "file"])
def test_a_compressed_core_is_refused_with_the_way_to_undo_it(tmp_path: Path, data, piped):
    path, out = tmp_path / "core.z", tmp_path / "out.bin"
    path.write_bytes(data)
    source = ("-", data) if piped else (str(path), b"")
    code, lines, said = capture("coredump", source[0], "--out", str(out), stdin=source[1])
    assert (code, lines) == (2, [])
    assert "compressed" in said
    assert "try:" in said


def test_an_elf_file_that_is_no_core_is_refused(tmp_path: Path):
    path, out = tmp_path / "zephyr.elf", tmp_path / "out.bin"
    path.write_bytes(firmware({}))
    code, lines, said = capture("coredump", str(path), "--out", str(out))
    assert (code, lines) == (1, [])
    assert "no core dump" in said
    assert list(tmp_path.iterdir()) == [path]


def test_a_linux_core_names_where_it_stood_if_the_program_is_the_same_build(tmp_path: Path):
    path, elf, out = tmp_path / "core", tmp_path / "modemd", tmp_path / "out.bin"
    path.write_bytes(linux_core(program=LoadedProgram(b"\x01" * 20)))
    elf.write_bytes(firmware({"main": (0x1000, 0x40)}))
    code, (line,), _ = capture("coredump", str(path), "--out", str(out), "--elf", str(elf))
    assert (code, line["elf_matches"], line["module"]) == (0, True, "/usr/bin/modemd")
    assert [(each["register"], each["function"]) for each in line["frames"]] == [("rip", "main")]
    assert line["fault_address"] == "0x1234"
    elf.write_bytes(firmware({"main": (0x1000, 0x40)}, build_id=b"\x02" * 20))
    _, (line,), _ = capture("coredump", str(path), "--out", str(out), "--elf", str(elf))
    assert line["elf_matches"] is False
    assert "frames" not in line


def test_a_device_core_names_where_it_stood_if_the_firmware_is_the_same_build(tmp_path: Path):
    path, elf, out = tmp_path / "core", tmp_path / "zephyr.elf", tmp_path / "out.bin"
    registers = struct.pack("<19I", *range(0x100, 0x113))
    path.write_bytes(
        device_core(block(0, registers), block(7, b"\x28\0\0\0"), block(12, b"\1" * 20))
    )
    elf.write_bytes(firmware({"main": (0x100, 0x40)}))
    code, (line,), _ = capture("coredump", str(path), "--out", str(out), "--elf", str(elf))
    assert (code, line["elf_matches"], line["registers"]["psp"]) == (0, True, "0x00000112")
    assert [(each["register"], each["offset"]) for each in line["frames"]] == [
        ("pc", 14),
        ("lr", 14),
    ]
    elf.write_bytes(firmware({"main": (0x100, 0x40)}, build_id=b"\2" * 20))
    _, (line,), _ = capture("coredump", str(path), "--out", str(out), "--elf", str(elf))
    assert line["elf_matches"] is False
    assert "frames" not in line


def test_a_linux_core_is_told_and_copied(tmp_path: Path):
    path, out = tmp_path / "core", tmp_path / "out.bin"
    path.write_bytes(linux_core())
    code, (line,), _ = capture("coredump", str(path), "--out", str(out))
    assert (code, line["status"], line["command"], line["signal"]) == (0, "complete", "modemd", 11)
    assert out.read_bytes() == linux_core()
    path.write_bytes(linux_core()[:-1])
    code, (line,), _ = capture("coredump", str(path), "--out", str(out))
    assert (code, line["status"], line["bytes"]) == (1, "incomplete", len(linux_core()) - 1)


def block(kind: int, body: bytes, address: int = 0) -> bytes:
    return struct.pack("<B3xII", kind, address, len(body)) + body


def device_core(*blocks: bytes, version: int = 2, said: int = 0) -> bytes:
    body = b"".join(blocks) or block(1, bytes(8), 0x20000000)
    footer = struct.pack("<4sI8x", b"DUMP", 0) if version > 1 else b""
    size = 12 + len(body) + len(footer)
    return struct.pack("<4sII", b"CORE", version, said or size) + body + footer


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (device_core(), "complete"),
        (device_core()[:-1], "incomplete"),
        (device_core()[:20], "incomplete"),
        (device_core(version=1), "complete"),
        (device_core(version=1)[:-1], "incomplete"),
        (device_core(version=0), "unsupported"),
        (device_core(version=3), "unsupported"),
        (device_core() + b"\xff" * 4096, "complete"),
        (device_core(said=12 + 16), "damaged"),
    ],
    ids=[
        "whole",
        "a byte short",
        "in its first block",
        "version 1, which has no footer",
        "version 1, a byte short",
        "version 0",
        "version 3",
        "as a debugger reads its partition of flash",
        "said less",
    ],
)
def test_a_device_core_is_cut_short_of_another_version_or_damaged(tmp_path, data, status):
    path, out = tmp_path / "core", tmp_path / "out.bin"
    path.write_bytes(data)
    code, (line,), _ = capture("coredump", str(path), "--out", str(out))
    assert (code, line["status"]) == (0 if status == "complete" else 1, status)


@pytest.mark.parametrize("data", [device_core(), linux_core()], ids=["device", "linux"])
def test_a_core_that_comes_through_a_pipe_is_one(tmp_path, data):
    out = tmp_path / "out.bin"
    code, (line,), _ = capture("coredump", "-", "--out", str(out), stdin=data)
    assert (code, line["status"], out.read_bytes()) == (0, "complete", data)


@pytest.mark.contract("O5.6")
@pytest.mark.parametrize("lines", ["as printed", "of capture chunks"])
def test_a_device_core_that_came_in_chunks_is_taken_out_beside_a_zephyr_dump(
    tmp_path: Path, lines: str
):
    one, other = sdk_bytes.coredump(), sdk_bytes.coredump(reason=0x8001)
    log = sdk_bytes.exported(b"\x01" + one) + sdk_bytes.exported(
        sdk_bytes.event_message(sdk_bytes.heartbeat())
    )
    log += sdk_bytes.exported(b"\x81" + sdk_bytes.run_lengths(other))
    if lines == "of capture chunks":
        log = "\n".join(map(json.dumps, capture("chunks", "-", stdin=log)[1])).encode()
    else:
        log += printed(header() + arch())
    out = tmp_path / "out.bin"
    code, told, _ = capture("coredump", "-", "--out", str(out), stdin=log)
    assert code == 0
    assert [each["status"] for each in told] == ["complete"] * (3 if "printed" in lines else 2)
    assert [each["reason"] for each in told[:2]] == [0x9400, 0x8001]
    assert out.read_bytes() == one
    assert Path(f"{out}.1").read_bytes() == other


def test_a_device_core_of_chunks_that_cannot_be_read_is_kept_apart(tmp_path: Path):
    out = tmp_path / "out.bin"
    log = sdk_bytes.exported(b"\x81\x7f\x01") + sdk_bytes.exported(
        b"\x01" + sdk_bytes.coredump()[:-5]
    )
    code, told, said = capture("coredump", "-", "--out", str(out), stdin=log)
    assert code == 1
    assert [each.get("status") for each in told] == ["damaged", "incomplete"]
    assert "no usable core dump was found" in said
    assert Path(f"{out}.incomplete.1").exists()
