"""Private files: 0600 from their first moment, or from now on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent.standin.store import make_private


def test_a_file_that_others_could_read_keeps_its_content_and_is_theirs_no_longer(
    tmp_path: Path,
) -> None:
    file = tmp_path / "state"
    file.write_text("kept")
    file.chmod(0o644)
    make_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "kept"


def test_it_needs_nothing_that_windows_lacks_before_python_3_13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "fchmod", raising=False)
    file = tmp_path / "keys" / "service-key.pem"
    make_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
