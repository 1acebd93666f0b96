"""`cellagent console` on a real terminal pair, as a person leaves it open."""

from __future__ import annotations

import base64
import json
import os
import pty
import select
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from zephyr_dumps import arch, header, memory, printed

from agent.observability.chunk_codec import encode

DUMP = header() + arch() + memory(0x20000000, bytes(100))
EVENT = b"\x02\xa1\x02\x01"
TEXT = (
    b"*** Booting nRF Connect SDK v3.1.0 ***\r\n"
    b"[00:00:01.000,000] <dbg> app: quiet\r\n"
    b"[00:00:02.000,000] <err> app: \x1b]52;c;AAAA\x07loud\r\n"
    + b"".join(b"MC:" + base64.b64encode(chunk) + b":\r\n" for chunk in encode(EVENT, 100))
    + b"MC:x:\r\n"
    + printed(DUMP)
)


@pytest.fixture
def kit() -> Iterator[tuple[int, str]]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield master, os.ttyname(slave)
    os.close(slave)
    os.close(master)


def console(kit: tuple[int, str], *arguments: str, until: str, text: bytes = TEXT) -> list[str]:
    """Run the command, print `text` once it listens, stop it once it has shown `until`."""
    master, path = kit
    window = subprocess.Popen(
        [sys.executable, "-m", "agent", "console", "--port", path, "--seconds", "30", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert window.stderr is not None
    assert window.stdout is not None
    for line in window.stderr:
        if "Ctrl-C ends" in line:
            break
    os.write(master, text)
    shown = []
    for line in window.stdout:
        shown.append(line.rstrip("\n"))
        if until in line:
            break
    window.terminate()
    window.wait(timeout=30)
    shown += window.stdout.read().splitlines()
    window.stdout.close()
    window.stderr.close()
    return shown


def test_each_thing_is_one_object_for_a_program(kit):
    shown = [json.loads(line) for line in console(kit, "--json", until='"coredump"')]
    assert [each["type"] for each in shown if "type" in each] == [
        "log",
        "reboot",
        "log",
        "log",
        "chunk",
        "damaged_chunk",
        "coredump",
    ]
    assert shown[4]["chunk"] == next(iter(encode(EVENT, 100))).hex()
    assert shown[6]["status"] == "complete"


def test_a_person_sees_lines_and_no_terminal_sequence_of_the_kit(kit):
    shown = console(kit, "--level", "warning", until="** core dump")
    assert not any("quiet" in line for line in shown)
    assert any("loud" in line for line in shown)
    assert "\x1b" not in "".join(shown)
    assert any(line.startswith("!! a chunk is damaged") for line in shown)


def test_only_lines_with_a_text_are_shown_when_asked(kit):
    shown = console(kit, "--match", "loud", until="core dump")
    assert sum("<" in line for line in shown) == 1


def test_chunks_and_dumps_are_saved_private(kit, tmp_path: Path):
    folder = tmp_path / "saved"
    console(kit, "--save", str(folder), until="core dump")
    assert (folder / "coredump.bin").read_bytes() == DUMP
    assert json.loads((folder / "chunks.jsonl").read_text()) == {
        "chunk": next(iter(encode(EVENT, 100))).hex()
    }
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    console(kit, "--save", str(folder), until="core dump")
    assert (folder / "coredump.bin.1").read_bytes() == DUMP


def test_lines_are_sent_to_the_kit(kit):
    console(kit, "--send", "mflt export", "--send", "kernel version", until="core dump")
    master, _ = kit
    sent = b""
    end = time.monotonic() + 10
    while b"version\r" not in sent and time.monotonic() < end:
        if select.select([master], [], [], 1)[0]:
            sent += os.read(master, 100)
    assert sent == b"mflt export\rkernel version\r"


def test_what_is_to_be_forwarded_needs_a_name_for_the_device(kit):
    done = subprocess.run(
        [sys.executable, "-m", "agent", "console", "--port", kit[1], "--forward", "--seconds", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "--device-serial" in done.stderr
