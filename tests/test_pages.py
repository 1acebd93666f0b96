"""What README, the tutorial and the how-tos say, typed in the order of the page in a fresh home."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tests.support.commands.shell_pages import ROOT, PageShell, Typed, saved, typed

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"(\$ |[A-Z_]+=\S+ )*(cellagent [a-z]|(curl|openssl|pipx?|schemathesis|\./[\w/]+) )"
)
_FILE = re.compile(r"# [\w-]+\.\w+\n")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_command_of_the_page_does_what_the_page_says(page: Path) -> None:
    # Not pytest's folder: a table folds its long name.
    with tempfile.TemporaryDirectory(prefix="page-") as folder, PageShell(Path(folder)) as shell:
        for name, text in saved(page).items():
            (Path(folder) / name).write_text(text)
        for wanted in typed(page):
            shell.run(wanted)


def test_what_a_page_starts_twice_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several starts of pytest, each compiling anew, were too slow for a busy machine."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "started.py").touch()
    with PageShell(tmp_path) as shell:
        shell.run(Typed(1, "python -c 'import started'"))
    assert list((tmp_path / "__pycache__").glob("started.*.pyc"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_block_of_commands_is_typed_or_marked_with_what_it_needs(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    others = [block for kind, block in _BLOCK.findall(text) if kind != "console"]
    lines = [line for block in others if not _FILE.match(block) for line in block.splitlines()]
    indented = [line[4:] for line in _BLOCK.sub("", text).splitlines() if line.startswith("    ")]
    assert [line for line in (*lines, *indented) if _COMMAND.match(line)] == []
    for wanted in typed(page):
        assert not wanted.command.startswith("#"), f"{page.name}:{wanted.line} is no command"
        timed = re.match(r"timeout .*&$", wanted.command)
        assert timed is None, f"{page.name}:{wanted.line} ends before a person has typed the next"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_virtual_board_does_not_come_among_the_real_ones(page: Path) -> None:
    """Where an agent runs, the ledger alone is apart: other windows ask for the agent.

    Elsewhere nothing stays in the profile either: `fota.source` was in the way of the next page.
    """
    lines = [wanted.command for wanted in typed(page)]
    agent = any(line.startswith("cellagent run ") for line in lines)
    provisioned = [n for n, line in enumerate(lines) if line.startswith("cellagent provision run")]
    if provisioned:
        ledger = 'cellagent config set provisioning.ledger "$(mktemp -d)/ledger.sqlite"'
        apart = ledger if agent else "export CELLAGENT_STATE_DIR=$(mktemp -d)"
        assert apart in lines[: provisioned[0]]
    if not agent and any(line.startswith("cellagent config ") for line in lines):
        assert not any("--write-profile" in line for line in lines)
