"""The demonstration shows a person every step, in a fixed order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.demo import _indented, _write_image
from agent.cli.framework.session import Session
from agent.errors import UsageError
from agent.fota.image import read_image
from tests.support.commands.command_line import completed
from tests.support.harness.full_disk import files_end_at

STEPS = ["find", "gate", "provision", "register", "jwt", "scan", "locate", "fota", "crash",
         "event", "outage"]  # fmt: skip


def test_a_person_sees_every_step_within_eighty_columns() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "agent", "demo"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert [
        line.split()[1] for line in ended.stdout.splitlines() if line.startswith("  ok")
    ] == STEPS
    assert "What next:" in ended.stdout
    assert not ended.stderr
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_a_step_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert _indented("cells 1, neighbors 17, access points 4").splitlines() == [
        "                cells 1, neighbors 17,",
        "                access points 4",
    ]


def test_the_image_of_the_demonstration_is_written_to_try_an_update_with(tmp_path: Path) -> None:
    done = completed("demo", "--write-image", str(tmp_path / "app.bin"), "--json")
    told = json.loads(done.stdout)
    assert read_image(tmp_path / "app.bin").version == f"{told['version']}+0"
    assert told["bytes"] == (tmp_path / "app.bin").stat().st_size


def test_a_version_that_no_image_has_is_refused_with_what_one_may_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        _write_image(Session(), tmp_path / "app.bin", "2.0.256")
    assert refused.value.hint == "write it as 2.0.2, no number above 255"


def test_an_image_for_which_there_is_no_room_leaves_the_earlier_one(tmp_path: Path) -> None:
    image = tmp_path / "app.bin"
    image.write_bytes(b"earlier")
    with files_end_at(100), pytest.raises(OSError, match=r"app\.bin"):
        _write_image(Session(), image, None)
    assert image.read_bytes() == b"earlier"
    assert [*tmp_path.iterdir()] == [image]


def test_an_image_for_which_the_disk_has_no_room_is_named() -> None:
    done = completed("demo", "--write-image", "/dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("cellagent: /dev/full: No space left on device\n  try: free some")
