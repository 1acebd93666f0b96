"""Fixtures that the tests of several rooms use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("CELLAGENT_CONFIG", str(path))
    return path
