"""What users and programs see is what is recorded of it, or is recorded anew on purpose."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ROOT / "tests" / "interface" / "commands.txt"


@pytest.fixture
def interface(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    spec = importlib.util.spec_from_file_location("interface", ROOT / "scripts" / "interface.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(900)  # hundreds of processes, beside whatever else the machine does
@pytest.mark.skipif(sys.platform == "win32", reason="a session is recorded on a pseudo-terminal")
@pytest.mark.parametrize("part", ["help", "openapi", "schemas", "shapes", "transcript"])
def test_it_is_as_recorded(interface: ModuleType, part: str) -> None:
    differs = interface.difference(interface.PARTS[part]())
    assert not differs, f"if that is meant: scripts/interface --write\n{differs}"


def test_every_command_is_run_for_the_shape_of_its_output(interface: ModuleType) -> None:
    helped = re.findall(r"(?m)^\$ cellagent (.+) --help$", interface.command_help()["help.txt"])
    commands = {one for one in helped if not any(each.startswith(f"{one} ") for each in helped)}
    run = re.findall(r"(?m)^(?:serve |until '.*' )?(.+)$", COMMANDS.read_text())
    never = {one for one in commands if not any(line.startswith(one) for line in run)}
    assert never == {"device openapi", "observe openapi"}  # their output is a record of its own
