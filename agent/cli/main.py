"""The entry of the command line. `--version` alone is answered before anything is imported."""

from __future__ import annotations

import os
import sys

from agent.cli import VERSION_LINE


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        try:
            os.write(sys.stdout.fileno(), f"{VERSION_LINE}\n".encode())
            return
        except (OSError, AttributeError):
            pass  # closed, or full: the command line says so
    from agent.cli.framework.command import run_command_line
    from agent.cli.framework.safe_text import guard_output
    from agent.cli.tree import root

    if os.environ.get("_CELLAGENT_COMPLETE", "").startswith("powershell"):
        import agent.cli.completion  # noqa: F401 - teaches click that shell
    guard_output()
    sys.exit(run_command_line(root))
