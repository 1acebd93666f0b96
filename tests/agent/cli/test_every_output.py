"""Whatever a terminal or a file can encode, and however wide it is: the same words are there."""

from __future__ import annotations

import io
import sys

import pytest

from agent.cli.framework.command import run_command_line
from agent.cli.framework.safe_text import guard_output
from agent.cli.tree import root
from tests.support.commands.command_tree import leaves

GROUPS = sorted({name.rpartition(" ")[0] for name in leaves()})
COMMANDS = (*GROUPS, *leaves())


def helps(monkeypatch: pytest.MonkeyPatch, encoding: str, columns: int) -> dict[str, str]:
    """Return the help of every command as it is written in an encoding."""
    monkeypatch.setenv("COLUMNS", str(columns))
    found = {}
    for name in COMMANDS:
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        monkeypatch.setattr(sys, "argv", ["cellagent", *name.split(), "--help"])
        guard_output()
        assert run_command_line(root) == 0
        sys.stdout.flush()
        # click writes UTF-8 to a stream of ASCII, which a help of plain letters alone stands.
        found[name] = written.getvalue().decode(encoding)
    return found


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_no_help_is_cut_however_narrow_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    narrow, usual, wide = (helps(monkeypatch, encoding, columns) for columns in (60, 80, 200))
    for name, text in narrow.items():
        words = ["".join(each.split()) for each in (text, usual[name], wide[name])]
        assert words[0] == words[1] == words[2]  # a word may be parted at its hyphen
