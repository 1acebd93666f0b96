"""A project of somebody who tests with a kit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands.user_project import UserProject


@pytest.fixture
def project(tmp_path: Path) -> UserProject:
    return UserProject(tmp_path / "project")
