"""The entry of the command line."""

from __future__ import annotations

import importlib
import os
import sys

from agent.cli.framework.command import run_command_line
from agent.cli.framework.safe_text import guard_output
from agent.cli.tree import root


def main() -> None:
    """Run the command line and exit with its code."""
    if os.environ.get("_CELLAGENT_COMPLETE", "").startswith("powershell"):
        importlib.import_module("agent.cli.completion")  # teaches click that shell
    guard_output()
    sys.exit(run_command_line(root))
