"""What a clone must carry and must not."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Written in two halves, so that this file does not hold what it looks for.
REGISTRY = re.compile(
    "py" r"pi\.org|python" r"hosted\.org|registry\.npm" r"js\.org|deb\.deb" r"ian\.org"
)


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of tracked files to look through")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_no_tracked_file_names_a_package_registry() -> None:
    for path in tracked():
        if path.is_file():
            assert not REGISTRY.search(path.read_text(errors="replace")), path


def test_a_name_in_a_command_that_is_told_is_quoted() -> None:
    """Profiles and ports may have blanks in their names, and what is told is pasted."""
    bare = re.compile(r"--(?:write-)?(?:profile|port) \{(?!shlex\.quote\(|quoted\})")
    sources = [path for path in tracked() if path.parts[len(ROOT.parts)] in {"agent", "at"}]
    for path in sources:
        if path.suffix == ".py" and path.is_file():
            assert not bare.search(path.read_text()), path


@pytest.mark.contract("C3")
def test_the_top_level_is_what_the_card_names() -> None:
    for name in (
        "pyproject.toml",
        "README.md",
        "agent",
        "at",
        "tests",
        "fixtures",
        "scripts",
        "docs",
    ):
        assert (ROOT / name).exists(), name


@pytest.mark.contract("C2")
@pytest.mark.parametrize(
    ("package", "place"),
    [
        ("serial", "at"),
        ("serial_asyncio", "at/transport"),
        ("httpx", "agent/http"),
        ("cbor2", "at/tokens"),
        ("jwt", "agent/auth"),
        ("cryptography", "at/tokens"),
        ("pytest", "at"),
        ("hypothesis", "tests"),
    ],
)
def test_each_package_of_the_card_is_used_where_its_job_is(package: str, place: str) -> None:
    """What it does there is held by the tests that carry the clause's mark beside this one."""
    assert any(uses(path, package) for path in (ROOT / place).rglob("*.py"))


def uses(path: Path, package: str) -> bool:
    """Return whether a module names, in its code, what it imports of a package."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).partition(".")[0] == package
    }
    return any(isinstance(node, ast.Name) and node.id in names for node in nodes)


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["completion", "bash"], ["modem", "decode"]],
    ids=" ".join,
)
def test_start_up_imports_no_network_crypto_or_database_module(arguments: list[str]) -> None:
    heavy = {
        "asyncio", "httpx", "ssl", "cryptography", "jwt", "sqlite3", "psycopg",
        "serial", "cbor2", "rich", "starlette", "uvicorn", "dbus_fast",
    }  # fmt: skip
    if arguments[0] != "modem":  # whose values are structs (decision 30)
        heavy.add("msgspec")
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agent", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=True,
        input="AT+CFUN?\r\n+CFUN: 1\r\nOK\r\n",
    )  # fmt: skip
    loaded = {
        line.rpartition("|")[2].strip().split(".")[0]
        for line in result.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert not loaded & heavy
