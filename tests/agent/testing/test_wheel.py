"""A project elsewhere that has the built wheel and pytest, and nothing else of this checkout."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.commands.installations import Installation, built_wheel, closure, requirements_of
from tests.support.commands.user_project import UserProject

SUITES = Path(__file__).parent / "suites"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserProject:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # whoever has this checkout on it
    wheel = built_wheel(tmp_path / "dist")
    asked = [*requirements_of(wheel), "pytest", "pytest-asyncio"]
    installation = Installation(tmp_path / "venv", closure(asked))
    installation.unpack(wheel)
    return UserProject(tmp_path / "project", installation.python)


def test_the_base_installation_is_enough_for_all_but_the_cloud(project: UserProject) -> None:
    shutil.copy(SUITES / "thirty.py", project.folder / "test_suite.py")
    shutil.copy(SUITES / "console.py", project.folder / "test_console.py")
    for kit in ("virtual", "record", "replay"):
        assert "33 passed" in project.run(f"--cellagent-kit={kit}")
    where = "import at\n\ndef test_it():\n    print(at.__file__)\n"
    project.write("test_where.py", where)
    assert str(project.python.parents[1]) in project.run("-s", "test_where.py")
    project.write("test_cloud.py", "def test_it(cloud):\n    pass\n")
    told = project.run("test_cloud.py", code=1)
    assert "cellagent[standin]" in told
    assert "agent/testing" not in told
