"""The examples of the page about other test benches, with the released versions of them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands.shell_pages import saved
from tests.support.commands.user_project import UserProject
from tests.support.modem.served_kit import PEERS, ServedKit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "benches.md"
FILES = dict(saved(PAGE))
PACKAGES = next((PEERS.parent / "lib").glob("python3*"), PEERS) / "site-packages"
EMBEDDED = PACKAGES / "pytest_embedded"
LABGRID = PEERS.parent / "labgrid" / "bin" / "python"


def ran(python: Path, folder: Path, *words: str) -> str:
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    kept = {**os.environ, "TMPDIR": str(folder)}  # pytest-embedded leaves its logs there
    done = subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, timeout=110, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.peer
def test_labgrid_drives_a_served_kit(tmp_path: Path, serve: Callable[..., ServedKit]) -> None:
    if not LABGRID.exists():
        pytest.skip("labgrid is not installed: ./scripts/peers")
    kit = serve()
    (tmp_path / "kit.yaml").write_text(FILES["kit.yaml"].replace("/tmp/kit", str(kit.port)))
    (tmp_path / "test_labgrid.py").write_text(FILES["test_labgrid.py"])
    assert "1 passed" in ran(LABGRID, tmp_path, "--lg-env", "kit.yaml", "test_labgrid.py")


@pytest.mark.peer
def test_pytest_embedded_drives_a_served_kit(
    tmp_path: Path, serve: Callable[..., ServedKit]
) -> None:
    if not EMBEDDED.exists():
        pytest.skip("pytest-embedded is not installed: ./scripts/peers")
    kit = serve()
    (tmp_path / "test_embedded.py").write_text(FILES["test_embedded.py"])
    words = "--embedded-services", "serial", "--port", str(kit.port), "test_embedded.py"
    assert "1 passed" in ran(PEERS / "python", tmp_path, *words)


def test_a_program_in_c_has_the_port_of_a_test(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: sudo apt-get install gcc")
    project = UserProject(tmp_path / "project")
    found = re.search(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    project.write("host.c", found[1])
    subprocess.run(
        [compiler, "-Wall", "-Werror", "-o", "host", "host.c"], cwd=project.folder, check=True
    )
    project.write("test_host.py", FILES["test_host.py"])
    for kit in ("virtual", "record", "replay"):
        assert "1 passed" in project.run(f"--cellagent-kit={kit}")


def test_a_firmware_on_an_emulated_board_has_the_port_of_a_test(tmp_path: Path) -> None:
    for program in ("arm-none-eabi-as", "qemu-system-arm"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: sudo ./scripts/setup")
    project = UserProject(tmp_path / "project")
    build = re.search(r"^arm-none-eabi-as .*$", PAGE.read_text(), re.MULTILINE)
    assert build is not None
    project.write("app.s", FILES["app.s"])
    subprocess.run(build[0], shell=True, cwd=project.folder, check=True)
    project.write("test_board.py", FILES["test_board.py"])
    for kit in ("virtual", "record", "replay"):
        assert "1 passed" in project.run(f"--cellagent-kit={kit}")


@pytest.mark.parametrize("name", ["test_thread.py", "test_expect.py", "test_until.py"])
def test_each_habit_does_the_same_in_fewer_lines(tmp_path: Path, name: str) -> None:
    project = UserProject(tmp_path / "project")
    project.write(name, FILES[name])
    if name == "test_expect.py":  # pexpect is among the released tools
        if not EMBEDDED.exists():
            pytest.skip("pexpect is not installed: ./scripts/peers")
        for package in ("pexpect", "ptyprocess"):
            (project.folder / package).symlink_to(EMBEDDED.with_name(package))
    assert "2 passed" in project.run(name)
    before, after = (
        each.end_lineno - each.lineno - text_blanks(FILES[name], each)
        for each in ast.parse(FILES[name]).body if isinstance(each, ast.FunctionDef)
    )  # fmt: skip
    assert after < before
    assert f"| {before} | {after} |" in PAGE.read_text()


def text_blanks(text: str, function: ast.FunctionDef) -> int:
    """Return how many lines of a function are blank."""
    return text.splitlines()[function.lineno : function.end_lineno].count("")
