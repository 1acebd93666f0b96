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
from elf_files import firmware, linux_core
from zephyr_dumps import arch, header, memory, printed

from agent.observability.chunk_codec import encode

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


def test_a_linux_core_is_told_and_copied(tmp_path: Path):
    path, out = tmp_path / "core", tmp_path / "out.bin"
    path.write_bytes(linux_core())
    code, (line,), _ = capture("coredump", str(path), "--out", str(out))
    assert (code, line["status"], line["command"], line["signal"]) == (0, "complete", "modemd", 11)
    assert out.read_bytes() == linux_core()
    path.write_bytes(linux_core()[:-1])
    code, (line,), _ = capture("coredump", str(path), "--out", str(out))
    assert (code, line["status"]) == (1, "incomplete")


def device_core(*, version: int = 2, said: int = 0) -> bytes:
    body = struct.pack("<B3xII", 1, 0x20000000, 8) + bytes(8)
    size = 12 + len(body) + 16
    header = struct.pack("<4sII", b"CORE", version, said or size)
    return header + body + struct.pack("<4sI8x", b"DUMP", 0)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (device_core(), "complete"),
        (device_core()[:-1], "incomplete"),
        (device_core()[:20], "incomplete"),
        (device_core(version=1), "unsupported"),
        (device_core() + b"\0", "damaged"),
        (device_core(said=12 + 16), "damaged"),
    ],
    ids=["whole", "a byte short", "in its first block", "version 1", "a byte over", "said less"],
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
