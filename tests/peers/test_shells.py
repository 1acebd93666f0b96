"""Completion as a person has it: the shells themselves, and their Tab key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands.typist import at_the_keyboard

pytestmark = pytest.mark.peer
SHELLS = {
    "bash": (("--norc", "-i"), 'eval "$(cellagent completion bash)"'),
    "zsh": (
        ("-f", "-i"),
        'autoload -U compinit; compinit -u -D; eval "$(cellagent completion zsh)"',
    ),
    "fish": (("--no-config", "-i"), "cellagent completion fish | source"),
}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a person whose home is empty, and who has installed `cellagent`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "TERM": "xterm", "LANG": "C.UTF-8"}


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}: scripts/setup installs it")


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_ends_the_word_that_was_begun(shell: str, home: dict[str, str]) -> None:
    needs(shell)
    options, source = SHELLS[shell]
    with at_the_keyboard(shell, *options, environment=home) as person:
        # The shell puts the words together, so that what was typed is not taken for its answer.
        person.types(f"{source}; echo re''ady\r".encode())
        person.reads(b"ready")
        person.types(b"cellagent modem virt\t")
        person.types(b"--help; echo do''ne\r")
        person.reads(b"Usage: cellagent modem virtual [OPTIONS]")
        person.reads(b"done")
        person.types(b"exit\r")


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_ends_a_value_behind_an_equals_sign_and_keeps_its_option(
    shell: str, home: dict[str, str]
) -> None:
    needs(shell)
    options, source = SHELLS[shell]
    shows = '{ echo "<$*>"; }' if shell != "fish" else '; echo "<$argv>"; end'
    begins = "cellagent()" if shell != "fish" else "function cellagent"
    with at_the_keyboard(shell, *options, environment=home) as person:
        person.types(f"{source}; {begins} {shows}; echo re''ady\r".encode())
        person.reads(b"ready")
        person.types(b"cellagent modem virtual --fault=no-si\t\r")
        person.reads(b"<modem virtual --fault=no-sim>")
        (port := Path(home["HOME"]) / "kit-link").touch()
        person.types(b"cellagent modem at --port=%b\t\r" % bytes(port)[:-2])
        person.reads(b"<modem at --port=%b>" % bytes(port))
        person.types(b"exit\r")


def test_fish_shows_a_description_whole_also_with_a_comma_in_it(home: dict[str, str]) -> None:
    needs("fish")
    asks = "cellagent completion fish | source; complete -C 'cellagent mod'"
    shown = subprocess.run(
        ["fish", "--no-config", "-c", asks], env=home, capture_output=True, text=True, check=True
    ).stdout
    listed = subprocess.run(
        [sys.executable, "-m", "agent", "--help"], capture_output=True, text=True, check=True
    ).stdout
    name, _, description = shown.rstrip("\n").partition("\t")
    assert name == "modem"
    assert description.count(",") >= 1
    assert description.split()[0] in listed
