"""The commands and examples of docs/howto/stand-in.md run as they stand, in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.standin.control import CHANGES
from agent.standin.faults import known_faults
from agent.standin.state import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "stand-in.md").read_text(encoding="utf-8")
COMMANDS = "".join(re.findall(r"(?ms)^```bash\n(.*?)^```", PAGE)).splitlines()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment where `cellagent` is this checkout's."""
    command = tmp_path / "cellagent"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent "$@"\n')
    command.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(
    command: str, environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_python_of_the_page_runs(environment: dict[str, str], tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text("\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", PAGE)))
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "devices" in done.stdout


def test_the_page_lists_every_fault_and_every_wish() -> None:
    for name, kind in known_faults().items():
        assert f"| `{name}` | {kind.help} |" in PAGE
    for name in (*CHANGES, *Settings.__slots__):
        assert f"`{name}`" in PAGE
