"""A file that is written has a name: `-` is standard output elsewhere."""

from pathlib import Path

import pytest

from tests.support.commands.command_line import completed


@pytest.mark.parametrize(
    "typed",
    [
        "doctor --report -",
        "demo --write-image -",
        "assist agnss --out -",
        "assist pgps --out -",
        "capture coredump - --out -",
        "modem import - --output -",
        "modem record - --port virtual: -- true",
    ],
)
def test_a_dash_is_no_file_that_is_written(private_home: Path, typed: str) -> None:
    stdin = "TX: AT+CGMR\nRX: OK\n"
    done = completed(*typed.split(), stdin=stdin, folder=private_home)
    assert (done.returncode, (private_home / "-").exists()) == (2, False), done.stderr
    assert "- is no file: name one" in done.stderr
