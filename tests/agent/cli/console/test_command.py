"""`cellagent console` on a real terminal pair, as a person leaves it open."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path

import cbor2
import pytest

from agent.config import load
from agent.config.profile import OutboxSettings
from agent.observability.ingest.chunk_codec import encode
from agent.outbox import Outbox
from agent.outbox.items import Item, Selection
from agent.wiring.forwarding import outbox_folder
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed

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


def console(
    kit: tuple[int, str], *arguments: str, until: str, text: bytes = TEXT, hears: bytes = b""
) -> list[str]:
    """Run the command, print `text` once it listens, stop it once it has shown `until`.

    The kit prints once it was sent what it `hears`.
    """
    master, path = kit
    window = subprocess.Popen(
        [sys.executable, "-m", "agent", "console", "--port", path, "--seconds", "90", *arguments],
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
    heard = b""
    while len(heard) < len(hears):
        heard += os.read(master, 100)
    assert heard == hears
    os.write(master, text)
    shown = []
    for line in window.stdout:
        shown.append(line.rstrip("\n"))
        if until in line:
            break
    else:
        pytest.fail(f"it ended without {until!r}: {shown}\n{window.stderr.read()}")
    window.terminate()
    assert window.wait(timeout=60) == 128 + signal.SIGTERM
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
    shown = console(kit, "--level", "warning", until="core dump: complete")
    assert not any("quiet" in line for line in shown)
    assert any("loud" in line for line in shown)
    assert "\x1b" not in "".join(shown)
    assert any(line.startswith("!! a chunk is damaged") for line in shown)


def test_only_lines_with_a_text_are_shown_when_asked(kit):
    shown = console(kit, "--match", "loud", until="core dump: complete")
    assert sum("<" in line for line in shown) == 1


def test_chunks_and_dumps_are_saved_private(kit, tmp_path: Path):
    folder = tmp_path / "saved"
    console(kit, "--save", str(folder), until="core dump: complete")
    assert (folder / "coredump.bin").read_bytes() == DUMP
    assert json.loads((folder / "chunks.jsonl").read_text()) == {
        "chunk": next(iter(encode(EVENT, 100))).hex()
    }
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    console(kit, "--save", str(folder), until="core dump: complete")
    assert (folder / "coredump.bin.1").read_bytes() == DUMP


def test_a_window_that_is_told_to_end_keeps_the_dump_that_is_coming_and_lets_the_port_go(
    kit: tuple[int, str], tmp_path: Path
) -> None:
    cut = TEXT[: TEXT.rindex(b"#CD:")]
    shown = console(kit, "--save", str(tmp_path), until="a core dump is coming", text=cut)
    assert any("core dump: incomplete" in line for line in shown), shown
    assert (tmp_path / "coredump.bin.incomplete").stat().st_size > 0
    terminal = os.open(kit[1], os.O_RDWR | os.O_NOCTTY)
    assert fcntl.ioctl(terminal, 0x80045440, bytes(4)) == bytes(4)  # TIOCGEXCL: nobody's alone
    os.close(terminal)


NAMED = {2: 1, 3: 1, 7: "kit-7", 10: "main", 9: "1.2.3", 6: "nrf9161dk", 4: {1: {}}}
NAMED_TEXT = (
    b"".join(
        b"MC:" + base64.b64encode(chunk) + b":\r\n"
        for chunk in encode(b"\x02" + cbor2.dumps(NAMED), 40)
    )
    + TEXT
)


@pytest.mark.contract("O5.2")
def test_whose_a_saved_dump_is_stands_beside_it_and_is_read_when_it_is_reported(
    kit, tmp_path: Path
):
    folder = tmp_path / "saved"
    console(kit, "--save", str(folder), until="core dump: complete", text=NAMED_TEXT)
    beside = folder / "coredump.bin.device.json"
    own = {
        "device_serial": "kit-7",
        "hardware_version": "nrf9161dk",
        "software_type": "main",
        "software_version": "1.2.3",
    }
    assert json.loads(beside.read_text()) == own
    assert beside.stat().st_mode & 0o777 == 0o600
    command = [sys.executable, "-m", "agent", "report", "coredump", str(folder / "coredump.bin")]

    def report(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "--queue", *options], capture_output=True, text=True, check=False, timeout=60
        )

    assert report("--software-version", "1.2.4").returncode == 0
    (item,) = kept("coredump")
    assert item.meta["device"] == own | {"software_version": "1.2.4"}
    beside.write_text("{")
    refused = report()
    assert (refused.returncode, "remove it" in refused.stderr) == (2, True)


def kept(kind: str) -> list[Item]:
    """Return what waits in the outbox of the profile."""
    with Outbox(outbox_folder(load()), OutboxSettings()) as outbox:
        return outbox.transact(
            lambda store: [
                item
                for lane in store.lanes()
                if lane[1] == kind
                for item in store.take(*lane, Selection(100, 1 << 20))
            ]
        )


@pytest.mark.contract("O5.2", "C7")
def test_a_dump_is_forwarded_under_the_names_that_the_kit_told(kit):
    arguments = ("--forward", "--device-serial", "kit-9", "--software-type", "mine")
    console(kit, *arguments, until="core dump: complete", text=NAMED_TEXT)
    (dump,) = kept("coredump")
    assert dump.meta["device"] == {
        "device_serial": "kit-9",
        "hardware_version": "nrf9161dk",
        "software_type": "mine",
        "software_version": "1.2.3",
    }
    assert {item.device for item in kept("chunk")} == {"kit-9"}


def test_lines_are_sent_to_the_kit(kit):
    lines = ("--send", "mflt export", "--send", "kernel version")
    console(kit, *lines, until="core dump: complete", hears=b"mflt export\rkernel version\r")


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
