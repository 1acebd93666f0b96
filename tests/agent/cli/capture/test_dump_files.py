"""The files of `cellagent capture coredump`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent.cli.capture.dump_files import DumpFiles, read_device_file, write_device_file
from agent.console.dump_lines import CapturedDump
from agent.console.line_classifier import ConsoleReader
from agent.files import private_files
from agent.observability.ingest.device_identity import DeviceIdentity
from tests.support.commands.command_line import with_bytes
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed

DUMP = header() + arch() + memory(0x20000000, bytes(100))


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    return with_bytes("capture", *arguments, stdin=stdin)


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


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full here: it is Linux that has one"
)
def test_half_a_dump_does_not_stay(tmp_path: Path):
    (captured,) = ConsoleReader().receive(printed(DUMP))
    files = DumpFiles(tmp_path / "core.bin")
    (tmp_path / "core.bin").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space"):
        files.write(captured)
    assert files.usable == 0


def test_a_dump_takes_the_place_of_a_link_and_goes_nowhere_else(tmp_path: Path):
    """Where others may write, too, a link may have been laid to a file of the user's."""
    (captured,) = ConsoleReader().receive(printed(DUMP))
    assert isinstance(captured, CapturedDump)
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "crash.bin").symlink_to(tmp_path / "mine")
    DumpFiles(tmp_path / "crash.bin").write(captured)
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert not (tmp_path / "crash.bin").is_symlink()
    assert (tmp_path / "crash.bin").read_bytes() == captured.data


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout here: Unix has one")
def test_a_dump_goes_through_a_device_of_the_system(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """`--out /dev/stdout > FILE`: that name leads to a file, and must stay what it is."""
    (captured,) = ConsoleReader().receive(printed(DUMP))
    assert isinstance(captured, CapturedDump)
    monkeypatch.delattr(private_files, "replacing")  # a name in /dev would be gone for everybody
    DumpFiles(Path("/dev/stdout")).write(captured)
    assert capfd.readouterr().out.startswith("ZE")


def test_what_is_known_of_the_device_goes_nowhere_else_either(tmp_path: Path):
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "crash.bin.device.json").symlink_to(tmp_path / "mine")
    write_device_file(tmp_path / "crash.bin", DeviceIdentity("kit7", "1", "app", "1.0.0"))
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert read_device_file(tmp_path / "crash.bin")["device_serial"] == "kit7"


def test_a_dump_that_cannot_be_kept_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (captured,) = ConsoleReader().receive(printed(DUMP))
    assert isinstance(captured, CapturedDump)
    out = tmp_path / "crash.bin"
    out.write_bytes(b"earlier")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        DumpFiles(out).write(captured)
    assert [path.name for path in tmp_path.iterdir()] == ["crash.bin"]
    assert out.read_bytes() == b"earlier"
