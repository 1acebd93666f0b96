"""The entry of the command line. `--version` alone is answered before anything is imported."""

import gc
import os
import sys

from agent.cli import EXIT_INTERRUPTED, VERSION_LINE

_OBJECTS_OF_A_START = 100_000


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        _run()
    except KeyboardInterrupt:  # nothing that could tell of it was imported
        sys.exit(EXIT_INTERRUPTED)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        try:
            os.write(sys.stdout.fileno(), f"{VERSION_LINE}\n".encode())
            return
        except (OSError, AttributeError):
            pass  # closed, or full: the command line says so
    # What is imported stays: to search it for garbage, again and again, would take a tenth of the
    # time of a short command. One that lasts (`framework.command.run`) collects as usual.
    gc.set_threshold(_OBJECTS_OF_A_START)
    if not os.environ.get("HOME", "~"):
        del os.environ["HOME"]  # of a service or a container: else ~ is the root of all files
    from agent.cli.framework.command import discard_output, run_command_line, show_defect
    from agent.cli.framework.safe_text import guard_output
    from agent.cli.tree import root

    if "_CELLAGENT_COMPLETE" in os.environ:
        import agent.cli.completion  # noqa: F401 - teaches click the shells
    guard_output()
    sys.excepthook = show_defect
    code = run_command_line(root)
    try:
        sys.stderr.flush()
    except OSError:  # what the log has lost changes nothing of how the command ended
        discard_output(sys.stderr)
    gc.freeze()  # nor does the end of the process search what it leaves
    sys.exit(code)
