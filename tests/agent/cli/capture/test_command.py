"""`cellagent capture`, as a person and a program run it."""

from __future__ import annotations

import base64
import json
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from elf_files import LoadedProgram, firmware, linux_core
from zephyr_dumps import arch, header, memory, printed
from zephyr_kernel import OFFSETS, Thread, kernel, table

from agent.observability.ingest.chunk_codec import encode

# The service's published test event.
EVENT = bytes.fromhex(
    "02a702010301076a5445535453455249414c0a6d746573742d736f667477617265096a312e302e302d74657374"
    "066d746573742d686172647761726504a101a1726368756e6b5f746573745f7375636365737301"
)
DUMP = header() + arch() + memory(0x20000000, bytes(100))


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "agent", "capture", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr.decode()


def exported(message: bytes, mtu: int = 46) -> bytes:
    return b"".join(
        b"[00:00:01.000,000] <inf> mflt: MC:" + base64.b64encode(chunk) + b":\r\n"
        for chunk in encode(message, mtu)
    )


def test_chunks_come_out_in_order_with_a_summary():
    code, lines, _ = capture("chunks", "-", stdin=b"noise\n" + exported(EVENT) + b"MC:x:\n")
    assert code == 0
    assert lines[:-1] == [{"chunk": chunk.hex()} for chunk in encode(EVENT, 46)]
    assert lines[-1] == {"summary": {"chunks": 2, "damaged_lines": 1}}


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path):
    log = tmp_path / "console.log"
    log.write_bytes(exported(EVENT) * 5000)  # more than a pipe holds
    command = [sys.executable, "-m", "agent", "capture", "chunks", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


@pytest.mark.parametrize("form", ["console", "json"])
def test_messages_are_read_from_console_text_and_from_chunk_lines(form):
    text = exported(EVENT)
    if form == "json":
        _, lines, _ = capture("chunks", "-", stdin=text)
        text = "\n".join(map(json.dumps, lines)).encode()
    code, (message, summary), _ = capture("messages", "-", stdin=text)
    assert code == 0
    assert message["message"] == EVENT.hex()
    assert message["kind"] == "event"
    assert message["decoded"]["event_info"] == {"metrics": {"chunk_test_success": 1}}
    assert summary == {"summary": {"messages": 1, "damaged": 0, "damaged_lines": 0}}


def test_chunks_that_do_not_add_up_are_reported():
    code, (damaged, summary), _ = capture("messages", "-", stdin=exported(EVENT, 30)[:100])
    assert code == 0
    assert "received" in damaged["damaged"]
    assert summary["summary"]["damaged"] == 1


def test_a_message_that_cannot_be_decoded_is_still_a_message():
    _, (message, _), _ = capture("messages", "-", stdin=exported(b"\x02\xff"))
    assert message["message"] == "02ff"
    assert message["decoded"] is None


def test_encode_prints_what_the_device_would():
    code, lines, _ = capture("encode", "--mtu", "46", stdin=EVENT.hex().encode() + b"\n")
    assert code == 0
    assert lines == [{"chunk": chunk.hex()} for chunk in encode(EVENT, 46)]


@pytest.mark.parametrize(("mtu", "text"), [("8", b"00"), ("46", b"xyz"), ("46", b"0")])
def test_encode_refuses_what_no_device_would_do(mtu, text):
    code, lines, said = capture("encode", "--mtu", mtu, stdin=text)
    assert (code, lines) == (2, [])
    assert "try:" in said


def test_dumps_are_written_private_and_numbered(tmp_path: Path):
    out = tmp_path / "crash.bin"
    text = printed(DUMP) + printed(DUMP[:-5]) + printed(DUMP)
    code, lines, _ = capture("coredump", "-", "--out", str(out), stdin=text)
    assert code == 0
    assert [line["status"] for line in lines] == ["complete", "incomplete", "complete"]
    assert lines[0] | {"bytes": len(DUMP), "blocks": ["A", "M"], "unknown_tail": False} == lines[0]
    assert lines[0]["registers"]["pc"] == "0x00000106"
    assert out.read_bytes() == (tmp_path / "crash.bin.1").read_bytes() == DUMP
    assert (tmp_path / "crash.bin.incomplete").read_bytes() == DUMP[:-5]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_no_usable_dump_is_a_failure_that_keeps_what_was_heard(tmp_path: Path):
    out = tmp_path / "crash.bin"
    code, _, said = capture("coredump", "-", "--out", str(out), stdin=printed(DUMP)[:-20])
    assert code == 1
    assert "incomplete" in said
    assert not out.exists()
    assert (tmp_path / "crash.bin.incomplete").read_bytes() == DUMP


def test_a_dump_without_bytes_is_told_and_no_file_is_named_for_it(tmp_path: Path):
    out = tmp_path / "core.bin"
    text = b"#CD:LOCATION 0x20001000\n" + printed(b"") + printed(DUMP)[:-20]
    code, (empty, cut), error = capture("coredump", "-", "--out", str(out), stdin=text)
    assert (code, empty["status"], cut["status"]) == (1, "empty", "incomplete")
    assert [path.name for path in tmp_path.iterdir()] == ["core.bin.incomplete"]
    assert "1 cannot be used" in error
    code, _, error = capture("coredump", "-", "--out", str(out), stdin=printed(b""))
    assert code == 1
    assert "coredump print" in error


def test_a_binary_dump_is_taken_as_one(tmp_path: Path):
    out = tmp_path / "copy.bin"
    code, (line,), _ = capture("coredump", "-", "--out", str(out), stdin=DUMP)
    assert (code, line["status"]) == (0, "complete")


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
    elf.write_bytes(firmware({}))
    told = dump_with_threads(tmp_path, "--elf", str(elf))
    assert "CONFIG_DEBUG_THREAD_INFO" in str(told["threads_detail"])
    elf.write_bytes(firmware({}, objects=table((7, *OFFSETS[1:]))))
    told = dump_with_threads(tmp_path, "--elf", str(elf))
    assert "version" in str(told["threads_detail"])


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
    assert (code, line["status"]) == (1, "incomplete")


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
        (device_core() + b"\0", "damaged"),
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
        "a byte over",
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
