"""`cellagent console` at a person's terminal: paused, typed at, and with the cable pulled."""

from __future__ import annotations

import base64
import os
import pty
import select
import signal
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.observability.ingest.chunk_codec import encode
from tests.support.dumps.elf_files import firmware
from tests.support.dumps.zephyr_dumps import Thread, arch, header, kernel, printed, table

PATIENCE_S = 90
CHUNK = next(iter(encode(b"\x02\xa1\x02\x01", 80)))
EXPORT = b"MC:" + base64.b64encode(CHUNK) + b":\r\n"
DUMP = header() + arch() + kernel([Thread("main"), Thread("idle", 0x80, 15)])


class Kit:
    """A kit whose port is `path`, which stays when the cable is pulled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plug()

    def plug(self) -> None:
        self.master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(self._slave))

    def pull(self) -> None:
        self.path.unlink(missing_ok=True)
        for descriptor in (self.master, self._slave):
            os.close(descriptor)

    def say(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.master, data) :]

    def heard(self, text: bytes) -> bytes:
        return read_until(self.master, text)


class Person:
    """Somebody who runs the command at a terminal, and reads it when they like."""

    def __init__(self, kit: Kit, *arguments: str) -> None:
        self.terminal, far = pty.openpty()
        command = [sys.executable, "-m", "agent", "console", "--port", str(kit.path), *arguments]
        self.process = subprocess.Popen(
            command, stdin=far, stdout=far, stderr=far, start_new_session=True
        )
        os.close(far)
        self.seen(b"Ctrl-C ends")

    def seen(self, text: bytes) -> bytes:
        return read_until(self.terminal, text)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


def read_until(descriptor: int, text: bytes) -> bytes:
    """Read until `text` has come; return all that came."""
    found = b""
    end = time.monotonic() + PATIENCE_S
    while text not in found:
        assert time.monotonic() < end, found[-2000:]
        if select.select([descriptor], [], [], 1)[0]:
            found += os.read(descriptor, 65536)
    return found


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    made = Kit(tmp_path / "kit")
    yield made
    made.pull()


@pytest.fixture
def person(kit: Kit, request: pytest.FixtureRequest) -> Iterator[Person]:
    found = Person(kit, *getattr(request, "param", ()))
    yield found
    found.close()


def test_a_terminal_that_takes_nothing_loses_nothing_and_holds_up_nothing(kit, tmp_path):
    folder = tmp_path / "saved"
    person = Person(kit, "--save", str(folder))
    lines = b"".join(b"[00:00:01.000,000] <inf> app: line %05d\r\n" % each for each in range(20000))
    kit.say(lines + EXPORT)  # more than any terminal holds; nobody reads it meanwhile
    end = time.monotonic() + PATIENCE_S
    while not (folder / "chunks.jsonl").exists():
        assert time.monotonic() < end
        select.select([], [], [], 0.01)
    shown = person.seen(b"** chunk 1")
    person.close()
    assert [int(line[-5:]) for line in shown.split(b"\r\n") if b"app: line" in line] == list(
        range(20000)
    )


def test_what_is_typed_goes_to_the_kit_and_the_terminal_stays_as_it_was(kit, person):
    assert os.get_blocking(person.terminal)
    os.write(person.terminal, b"kernel version\n")
    assert kit.heard(b"version\r") == b"kernel version\r"
    flags = Path(f"/proc/{person.process.pid}/fdinfo/1").read_text()
    (octal,) = [line.split()[1] for line in flags.splitlines() if line.startswith("flags")]
    assert not int(octal, 8) & os.O_NONBLOCK


def test_a_pulled_cable_ends_the_line_and_the_dump_and_the_window_goes_on(kit, person):
    kit.say(printed(DUMP)[:300] + b"\r\n[00:00:48.000,000] <inf> half a li")
    person.seen(b"a core dump is coming")
    kit.pull()
    shown = person.seen(b"waiting for it to come back")
    kit.plug()
    shown += person.seen(b"Ctrl-C ends")
    kit.say(b"[00:00:00.000,000] <inf> app: after\r\n")
    shown += person.seen(b"app: after")
    assert b"half a li\r\n" in shown
    assert b"core dump: incomplete" in shown
    assert b"\n[00:00:00.000,000] <inf> app: after" in shown.replace(b"\x1b[0m", b"")


@pytest.mark.contract("C7")
def test_lines_of_a_dump_whose_beginning_was_missed_are_told_once(kit, person):
    kit.say(b"#CD:00\r\n" * 500 + b"app: after\r\n")
    shown = person.seen(b"app: after")
    assert shown.count(b"!! a line of a core dump is damaged") == 1
    assert b"and 499 more such lines" in shown
    person.process.send_signal(signal.SIGINT)
    assert b"500 damaged dump lines" in person.seen(b"stopped by Ctrl-C")
    assert person.process.wait(PATIENCE_S) == 130


def test_counters_are_told_in_words(kit, person):
    kit.say(EXPORT + b"app: after\r\n")
    person.seen(b"app: after")
    person.process.send_signal(signal.SIGINT)
    assert b"2 lines, 1 chunk\r\n" in person.seen(b"stopped by Ctrl-C")


def test_the_threads_of_a_dump_are_told_when_the_firmware_is_given(kit, tmp_path):
    elf = tmp_path / "zephyr.elf"
    elf.write_bytes(firmware({"main": (0x100, 0x40)}, objects=table()))
    person = Person(kit, "--elf", str(elf))
    kit.say(printed(DUMP))
    shown = person.seen(b"idle")
    person.close()
    assert b"* main" in shown
    assert b"pc       main" in shown
