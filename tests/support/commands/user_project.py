"""A project of another person's that tests with the plugin: a folder, and its own pytest."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_LONGEST_S = 100
_NOT_THEIRS = ("schemathesis", "hypothesispytest", "pytest_cov", "anyio")
ENVIRONMENT = {
    # Compiled once for all of them.
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTEST_ADDOPTS": " ".join(f"-p no:{plugin}" for plugin in _NOT_THEIRS),
}
"""What its owner's pytest is run with, whose plugins are few. To import all that our own tests need
takes two thirds of a run with one test."""


class UserProject:
    """A folder with the one line in its conftest.py that switches the plugin on."""

    def __init__(self, folder: Path, python: Path = Path(sys.executable)) -> None:
        folder.mkdir()
        self.folder, self.python = folder, python
        self.write("conftest.py", 'pytest_plugins = ["agent.testing.plugin"]\n')
        self.write(
            "pytest.ini",
            "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n",
        )

    def write(self, name: str, text: str) -> None:
        """Write a file of the project, seconds after it was written before.

        By these and its size alone is it known whether what was compiled of it is out of date.
        """
        file = self.folder / name
        before_s = file.stat().st_mtime if file.exists() else None
        file.write_text(text)
        if before_s is not None:
            os.utime(file, (before_s + 2, before_s + 2))

    def run(self, *words: str, code: int = 0, **environment: str) -> str:
        """Run pytest there, as its owner would; return what it prints."""
        command = [str(self.python), "-m", "pytest", "-p", "no:cacheprovider", *words]
        with subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **ENVIRONMENT, **environment},
        ) as started:  # fmt: skip
            try:
                printed, _ = started.communicate(timeout=_LONGEST_S)
            except subprocess.TimeoutExpired:
                started.send_signal(signal.SIGABRT)  # its last words are where each thread is
                printed, _ = started.communicate()
                pytest.fail(f"not over in {_LONGEST_S} s: {printed}")
        assert started.returncode == code, printed
        return printed
