"""`cellagent capture`, as a person and a program run it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from agent.observability.ingest.chunk_codec import encode
from tests.support.commands.command_line import with_bytes
from tests.support.dumps.sdk_bytes import EXAMPLE_MESSAGE, exported


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    return with_bytes("capture", *arguments, stdin=stdin)


def test_chunks_come_out_in_order_with_a_summary():
    code, lines, _ = capture(
        "chunks", "-", stdin=b"noise\n" + exported(EXAMPLE_MESSAGE) + b"MC:x:\n"
    )
    assert code == 0
    assert lines[:-1] == [{"chunk": chunk.hex()} for chunk in encode(EXAMPLE_MESSAGE, 46)]
    assert lines[-1] == {"summary": {"chunks": 2, "damaged_lines": 1}}


@pytest.mark.parametrize("command", ["chunks", "messages"])
def test_a_console_that_powershell_saved_holds_the_same_and_a_compressed_one_is_refused(
    command: str, tmp_path: Path
):
    _, plain, _ = capture(command, "-", stdin=exported(EXAMPLE_MESSAGE))
    assert len(plain) > 1
    saved = exported(EXAMPLE_MESSAGE).decode().encode("utf-16")
    assert capture(command, "-", stdin=saved)[1] == plain
    packed = tmp_path / "console.log.gz"
    packed.write_bytes(gzip.compress(exported(EXAMPLE_MESSAGE)))
    code, _, said = capture(command, str(packed))
    assert code == 2
    assert "it is compressed" in said
    assert "gunzip" in said


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path):
    log = tmp_path / "console.log"
    log.write_bytes(exported(EXAMPLE_MESSAGE) * 5000)  # more than a pipe holds
    command = [sys.executable, "-m", "agent", "capture", "chunks", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_a_message_that_cannot_be_decoded_is_still_a_message():
    _, (message, _), _ = capture("messages", "-", stdin=exported(b"\x02\xff"))
    assert message["message"] == "02ff"
    assert message["decoded"] is None


def test_encode_prints_what_the_device_would():
    code, lines, _ = capture("encode", "--mtu", "46", stdin=EXAMPLE_MESSAGE.hex().encode() + b"\n")
    assert code == 0
    assert lines == [{"chunk": chunk.hex()} for chunk in encode(EXAMPLE_MESSAGE, 46)]


@pytest.mark.parametrize(
    ("mtu", "text", "named"),
    [("8", b"00", "at least 9 bytes"), ("46", b"xyz", "hex digits"), ("46", b"0", "hex digits")],
)
def test_encode_refuses_what_no_device_would_do(mtu, text, named):
    code, lines, said = capture("encode", "--mtu", mtu, stdin=text)
    assert (code, lines) == (2, [])
    assert named in said
    assert "fromhex" not in said
    assert "try:" in said
